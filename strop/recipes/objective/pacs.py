"""PACS (2509.02522): right and wrong attempts told apart by the policy's own log-ratios."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.pacs import Pacs
from strop.train.reductions.sequence_mean import SequenceMean


def pacs(setting: Setting = Setting(), beta: float = 1.0) -> Run:
    """Cross-entropy of leave-one-out scores; no advantage."""
    return setting.run("pacs", Constant(), (Pacs(beta),), reduction=SequenceMean())
