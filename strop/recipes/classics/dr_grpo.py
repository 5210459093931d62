"""Dr. GRPO (Liu et al., 2503.20783): GRPO without the two normalisations that favour long wrong and easy answers."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_mean import GroupMean
from strop.train.losses.clip import Clip
from strop.train.reductions.constant_length import ConstantLength


def dr_grpo(setting: Setting = Setting(), clip: float = 0.2) -> Run:
    """Rewards minus the group's mean, every token divided by the same constant length."""
    return setting.run("dr_grpo", GroupMean(), (Clip(clip, clip),), reduction=ConstantLength(setting.max_tokens))
