"""Intuitive fine-tuning (2405.11870) on the worlds' own demonstrations."""

from __future__ import annotations

from strop.generate.agents.demonstrate import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.constant import Constant
from strop.train.losses.intuitive import Intuitive
from strop.train.reductions.sequence_mean import SequenceMean


def ift(setting: Setting = Setting(group_size=1, groups_per_step=64), share: float = 0.2, decay: float = 0.95) -> Run:
    """One demonstration per task, read with a share of the policy's own guesses."""
    losses = (Intuitive(share, decay),)
    return setting.run("ift", Constant(), losses, agent=Demonstrate(), reduction=SequenceMean())
