"""GRPO whose entropy is held in a band.

Acts: outside_band > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy_clamp import EntropyClamp


def entropy_band(
    setting: Setting = Setting(),
    low: float = 0.2,  # below it entropy is paid for
    high: float = 2.0,  # above it entropy is punished
    strength: float = 0.01,  # of both
) -> Run:
    """A bonus below the band, a penalty above it."""
    return setting.run("entropy_band", GroupStandard(), (Clip(), EntropyClamp(low, high, strength)))
