"""Direct preference-based policy optimization (2301.12842) among fresh attempts."""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.direct_preference import DirectPreference
from strop.train.reductions.sequence_mean import SequenceMean


def direct_preference(
    setting: Setting = Setting(), temperature_of_distance: float = 0.1, conservatism: float = 1.0
) -> Run:
    """All pairs of siblings with different rewards; no reference."""
    losses = (DirectPreference(temperature_of_distance, conservatism),)
    return setting.run("direct_preference", Constant(), losses, gates=(ZeroVariance(),), reduction=SequenceMean())
