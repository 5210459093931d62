"""Online DivPO (2501.18101): prefer what is right and rare to what is wrong and common."""

from __future__ import annotations

from strop.filter.gates.diverse_pair import DiversePair
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.dpo import Dpo
from strop.train.reductions.sequence_mean import SequenceMean


def divpo(setting: Setting = Setting(), share: float = 0.1, beta: float = 0.1) -> Run:
    """DPO on the most unusual good attempt and the most usual bad one."""
    return setting.run("divpo", Constant(), (Dpo(beta),), gates=(DiversePair(share),), reduction=SequenceMean())
