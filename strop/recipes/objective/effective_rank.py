"""VERL (2509.23808): GRPO's credit, raised where hidden states span more dimensions than usual, or come to."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.advantages.hidden_rank import HiddenRank
from strop.train.losses.clip import Clip


def effective_rank(setting: Setting = Setting(), stride: int = 4, clip: float = 0.2) -> Run:
    """The paper's stride of 40 tokens is for long answers; those of the pocket model have about 25."""
    return setting.run("effective_rank", HiddenRank(GroupStandard(), stride), (Clip(clip, clip),))
