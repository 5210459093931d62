"""APRIL (2509.18521): more groups in flight than a step needs; the long tail goes on under the next weights."""

from __future__ import annotations

from strop.control.paces.over_provision import OverProvision
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip


def april(setting: Setting = Setting(lag=5), surplus: float = 2.0) -> Run:
    """GRPO with DAPO's clip; a step takes the first groups that are done, and none is ever thrown away."""
    return setting.run("april", GroupStandard(), (Clip(0.2, 0.28),), pace=OverProvision(surplus, setting.lag))
