"""RollArt: asynchronous GRPO for agents, at most one version ahead, with rewards computed in separate processes.

Title: RollArt: Scaling Agentic RL Training via Disaggregated Infrastructure
Paper: arXiv 2512.22560 (2025)
Claim: Training takes 1.35 to 2.05 times less time from end to end, shown on more than 3,000 GPUs.
Reading: The bound is on the version at which a rollout starts, as in the paper, whose best value is 1. The trainer
    waits for a group that would become too old; the paper evicts it. The reward is the environment's check of the last
    completion, so that there is a reward to compute in other processes.
Left out: Device pools chosen by the kind of work, redundant episodes, and serverless rewards: here they have
    `reward_workers` processes.
Acts: lag > 0 and reward/checked > 0
"""

from __future__ import annotations

from strop.filter.rewards.from_environment import Checked
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def rollart(
    setting: Setting = Setting(env="guess:2", lag=1),
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    reward_workers: int = 2,  # processes that compute rewards
) -> Run:
    """GRPO with rollout-level scheduling: a slow environment delays its own group only."""
    run = setting.run("rollart", GroupStandard(), (Clip(clip, clip),), reward_workers=reward_workers)
    run.rewards = (Checked(run.envs),)
    return run
