"""FlexMARL: on-policy GRPO with gradients accumulated by micro-batch while multi-turn rollouts are still generated.

Title: Rollout-Training Co-Design for Efficient LLM-Based Multi-Agent Reinforcement Learning
Paper: arXiv 2602.09578 (2026)
Claim: Up to 7.3 times as fast as the systems it is compared with, at up to 5.6 times their use of the hardware.
Reading: The micro-batch pipeline, on-policy, with GRPO, for one agent of several turns.
Left out: Separate weights, optimizer and sample table for each agent, engines that are reassigned between agents, and
    swapping of training states.
Acts: parts > 1
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def flexmarl(
    setting: Setting = Setting(env="guess:2"),
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """Groups are processed in the order in which they finish; the gradient is that of the whole batch."""
    return setting.run("flexmarl", GroupStandard(), (Clip(clip, clip),), streams=True)
