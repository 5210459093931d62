"""C3PO++ of Ring-1T (2510.18855): steps of a fixed number of tokens; unfinished attempts survive the update."""

from __future__ import annotations

from strop.control.paces.token_budget import TokenBudget
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip


def c3po_plus_plus(setting: Setting = Setting(lag=5), tokens: int = 1600, pool: int = 16) -> Run:
    """A step trains on whatever is done once that many tokens are in."""
    return setting.run("c3po_plus_plus", GroupStandard(), (Clip(),), pace=TokenBudget(tokens, pool, setting.lag))
