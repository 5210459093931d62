"""PPO with a process reward that filler steps cannot raise, beside the task's own.

Title: On Designing Effective RL Reward at Training Time for LLM Reasoning
Paper: arXiv 2410.15115 (2024)
Claim: Process rewards that are clipped and paid as differences help models of 1.5B and 7B beyond the success reward,
    where raw ones are exploited by repeated steps and make them worse.
Reading: The threshold is the mean judgement of the group's steps. The weight beside the success reward and PPO's
    numbers were not found: those here are ours. A rule that checks calculations stands for the process reward model.
    form takes clip, delta and raw alone, too.
Left out: Reward models of outcomes, and process reward models that are trained.
Acts: reward/clip_delta != 0 and credit_within > 0
"""

from __future__ import annotations

from strop.filter.rewards.clip_delta import ClipDelta
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic


def clip_delta(
    setting: Setting = Setting(),
    form: str = "clip-delta",  # clip-delta, clip, delta, or raw
    weight: float = 0.5,  # of the process reward beside the success reward
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """Each step of the working is paid at its last token, the answer by the world."""
    run = setting.run(
        "clip_delta",
        Gae(),
        (Clip(clip, clip), Kl("k2", kl)),
        values=Critic(device=setting.device),
        minibatches=4,
    )
    run.rewards = (*run.rewards, ClipDelta(form=form, weight=weight))
    return run
