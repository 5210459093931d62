"""GRPO with the exact KL over the whole vocabulary, in either direction.

Acts: reverse_kl > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.exact_kl import ExactKl
from strop.training.reductions.means import SequenceMean


def exact_kl(
    setting: Setting = Setting(),
    direction: str = "reverse",  # reverse (mode-seeking) or forward (mass-covering)
    kl: float = 0.04,  # weight of the KL penalty to the reference policy
) -> Run:
    """Reverse KL keeps the policy within the support of the reference; forward KL makes it cover that support."""
    losses = (Clip(), ExactKl(direction, weight=kl))
    return setting.run("exact_kl", GroupStandard(), losses, reduction=SequenceMean())
