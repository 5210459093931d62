"""Online IPO (2310.12036): a margin to reach."""

from __future__ import annotations

from strop.filter.gates.best_and_worst import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.ipo import Ipo
from strop.train.reductions.sequence_mean import SequenceMean


def ipo(setting: Setting = Setting(), tau: float = 0.1) -> Run:
    """The best and the worst of fresh attempts as a pair."""
    return setting.run("ipo", Constant(), (Ipo(tau),), gates=(BestAndWorst(),), reduction=SequenceMean())
