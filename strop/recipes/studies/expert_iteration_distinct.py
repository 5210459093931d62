"""Expert iteration (2403.04642) without duplicates: each way to the right answer is imitated once."""

from __future__ import annotations

from strop.filter.gates.distinct import Distinct
from strop.filter.gates.successes import Successes
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.likelihood import Likelihood
from strop.train.reductions.sequence_mean import SequenceMean


def expert_iteration_distinct(setting: Setting = Setting()) -> Run:
    """Keep what succeeded, once each, and raise its likelihood; every kept attempt counts the same."""
    gates = (Successes(), Distinct())
    return setting.run("expert_iteration_distinct", Constant(), (Likelihood(),), gates=gates, reduction=SequenceMean())
