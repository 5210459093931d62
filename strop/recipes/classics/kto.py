"""Online KTO (2402.01306): good and bad attempts, without pairs."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.kto import Kto
from strop.train.reductions.sequence_mean import SequenceMean


def kto(setting: Setting = Setting(), beta: float = 0.1) -> Run:
    """Every attempt counts by itself, against the siblings' mean log-ratio."""
    return setting.run("kto", Constant(), (Kto(beta),), reduction=SequenceMean())
