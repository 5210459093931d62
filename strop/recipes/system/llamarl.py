"""LlamaRL (2505.24034): trainer and generator one version apart, AIPO's one-sided importance weight in between."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.leave_one_out import LeaveOneOut
from strop.train.losses.aipo import Aipo


def llamarl(setting: Setting = Setting(lag=1), cap: float = 8.0) -> Run:
    """Leave-one-out baseline; a token's weight is its ratio to the sampler, at most `cap`."""
    return setting.run("llamarl", LeaveOneOut(), (Aipo(cap),))
