"""Rewarded for beating the task's answer in a judge's eyes.

Title: A Unified Pairwise Framework for RLHF: Bridging Generative Reward Modeling and Policy Optimization
Paper: arXiv 2504.04950 (2025)
Claim: A pairwise judge and a pairwise PPO are better than a scalar reward model, in and out of its domain.
Reading: No formula was found: the reward is the probability of winning, averaged over both orders, minus one half.
    Without a `judge` the environments' own checks compare.
Left out: Training the judge, and a critic that reads the answer compared with.
Acts: reward/pairwise != 0
"""

from __future__ import annotations

from strop.filter.judges.pairwise_judge import Generative, Graded
from strop.filter.rewards.pairwise_vs_reference import Pairwise
from strop.models.loading.model_names import model_folder
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def pairwise_rl(
    setting: Setting = Setting(),
    judge: str = "",  # folder of a generative judge; empty: the environments' own checks compare
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """`judge` is the folder of a generative judge; without one the environments' own checks compare."""
    envs = parse_envs(setting.env, setting.seed)
    who = Generative(str(model_folder(judge))) if judge else Graded(envs)
    return setting.run(
        "pairwise_rl",
        Gae(),
        (Clip(clip, clip), Kl("k2", kl)),
        values=Critic(device=setting.device),
        rewards=(Pairwise(who),),
    )
