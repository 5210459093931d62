"""Online DPO (Rafailov et al., 2305.18290): the best and worst of fresh attempts as a preference pair."""

from __future__ import annotations

from strop.filter.gates.best_and_worst import BestAndWorst
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.dpo import Dpo
from strop.train.reductions.sequence_mean import SequenceMean


def dpo(setting: Setting = Setting(), beta: float = 0.1) -> Run:
    """Pairs are made by the current policy each step; groups without contrast give none and are replaced."""
    return setting.run("dpo", Constant(), (Dpo(beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
