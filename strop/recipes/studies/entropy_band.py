"""GRPO whose policy entropy is kept within a band: a bonus below it, a penalty above it.

Acts: outside_band > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import EntropyClamp


def entropy_band(
    setting: Setting = Setting(),
    low: float = 0.2,  # entropy below which the bonus acts, in nats
    high: float = 2.0,  # entropy above which the penalty acts, in nats
    strength: float = 0.01,  # weight of bonus and penalty
) -> Run:
    """Entropy bonus below `low`, entropy penalty above `high`."""
    return setting.run("entropy_band", GroupStandard(), (Clip(), EntropyClamp(low, high, strength)))
