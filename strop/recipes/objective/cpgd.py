"""CPGD (2505.12504): a clipped policy gradient with policy drift."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_mean import GroupMean
from strop.train.losses.cpgd import Cpgd


def cpgd(setting: Setting = Setting(), clip: float = 0.2, drift: float = 0.001) -> Run:
    """Rewards minus the group's mean; no ratio in front of the gradient."""
    return setting.run("cpgd", GroupMean(), (Cpgd(clip, drift),))
