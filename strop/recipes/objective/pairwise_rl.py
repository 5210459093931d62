"""Pairwise RLHF: PPO rewarded with a judge's probability that the completion beats the reference answer.

Title: A Unified Pairwise Framework for RLHF: Bridging Generative Reward Modeling and Policy Optimization
Paper: arXiv 2504.04950 (2025)
Claim: A pairwise judge and a pairwise PPO are better than a scalar reward model, in and out of distribution.
Reading: No formula was found: the reward is the probability of winning, averaged over both orders, minus one half.
    Without a `judge` the environments' own checks compare the two.
Left out: Training the judge, and a critic that reads the reference answer.
Acts: reward/pairwise != 0
"""

from __future__ import annotations

from strop.filter.judges.pairwise_judge import Generative, Graded
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.recipes.named_parts import named_model
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def pairwise_rl(
    setting: Setting = Setting(),
    judge: str = "",  # model folder of a generative judge; empty: the environments' checks
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """PPO with a critic on pairwise rewards; without a `judge` the environments' checks compare."""
    run = setting.run("pairwise_rl", Gae(), (Clip(clip, clip), Kl("k2", kl)), values=Critic(device=setting.device))
    run.rewards = (Pairwise(Generative(named_model("judge", judge)) if judge else Graded(run.envs)),)
    return run
