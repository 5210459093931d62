"""A world model: it foretells what an action changes, and is paid by how well that matches.

Title: RLVR-World: Training World Models with Reinforcement Learning
Paper: arXiv 2505.13934 (2025)
Claim: World models of language and video gain on their own measures beyond what supervised training gives.
Reading: Supervised training on true changes first, then GRPO on the measure itself: F1 over changed items, as for web
    pages, or with form=exact whether all of them are right, as for text games. Where nothing changes, foretelling
    nothing is right, where the release gives 0. Group size and penalty were not found: those here are ours. The world
    is a store of numbers and one action.
Left out: The text games' sum of partial rewards, and video.
Acts: reward/change_f1 > 0 and warmup/nll > 0 with taught=4, steps=1
"""

from __future__ import annotations

from strop.filter.rewards.change_f1 import ChangeF1
from strop.filter.rewards.env_reward import Earned
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def rlvr_world(
    setting: Setting = Setting(world="next_state:3"),
    form: str = "f1",  # f1 or exact
    taught: int = 20,  # steps of supervised training first
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """The reward is the measure by which world models are compared."""
    run = setting.run("rlvr_world", GroupStandard(), (Clip(), Kl("k3", kl)))
    run.warmup = shown(setting, "rlvr_world", taught)
    run.rewards = (ChangeF1(form), Earned(weight=0.0))
    return run
