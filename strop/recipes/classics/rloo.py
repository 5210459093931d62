"""RLOO (Ahmadian et al., 2402.14740): REINFORCE with each attempt's siblings as its baseline."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.leave_one_out import LeaveOneOut
from strop.train.losses.reinforce import Reinforce
from strop.train.reductions.sequence_mean import SequenceMean


def rloo(setting: Setting = Setting()) -> Run:
    """Leave-one-out baseline, plain policy gradient: unbiased when on-policy."""
    return setting.run("rloo", LeaveOneOut(), (Reinforce(),), reduction=SequenceMean())
