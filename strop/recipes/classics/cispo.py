"""CISPO (MiniMax-M1, 2506.13585): clip the importance weight instead of the token's gradient."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.cispo import Cispo


def cispo(setting: Setting = Setting()) -> Run:
    """Every token keeps a gradient; only its weight is bounded."""
    return setting.run("cispo", GroupStandard(), (Cispo(),))
