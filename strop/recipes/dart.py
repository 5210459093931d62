"""DART (2509.23866): decoupled generation and training on tasks that come back, with fewer attempts at easy ones."""

from __future__ import annotations

from dataclasses import replace

from strop.control.budgets.by_success import BySuccess
from strop.control.samplers.few import Few
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.corrections.truncated import Truncated
from strop.train.losses.clip import Clip
from strop.train.reductions.sequence_mean import SequenceMean


def dart(setting: Setting = Setting(lag=1), tasks: int = 64, easy: float = 0.6, least: int = 2) -> Run:
    """`tasks` of each world over and over; clip 0.1/0.28 from the weights before the step, weights cut at 1."""
    run = setting.run(
        "dart",
        GroupStandard(),
        (Clip(0.1, 0.28, dual=10.0, anchor="proximal"),),
        budget=BySuccess(setting.group_size, easy, least),
        correction=Truncated(1.0, target="proximal"),
        reduction=SequenceMean(),
    )
    return replace(run, sampler=Few(run.worlds, tasks))
