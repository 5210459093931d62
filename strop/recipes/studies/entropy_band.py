"""GRPO whose entropy is held in a band."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip
from strop.train.losses.entropy_clamp import EntropyClamp


def entropy_band(setting: Setting = Setting(), low: float = 0.2, high: float = 2.0, strength: float = 0.01) -> Run:
    """A bonus below the band, a penalty above it."""
    return setting.run("entropy_band", GroupStandard(), (Clip(), EntropyClamp(low, high, strength)))
