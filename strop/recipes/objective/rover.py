"""ROVER (2509.24981): the value of a uniformly random policy, learned as a log-ratio."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_mean import GroupMean
from strop.train.losses.rover import Rover


def rover(setting: Setting = Setting(), scale: float = 1.0) -> Run:
    """A regression to the centred reward and the mean Q of the next state."""
    return setting.run("rover", GroupMean(), (Rover(scale),))
