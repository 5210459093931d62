"""GSPO (Zheng et al., 2507.18071): importance ratios and clipping of whole answers."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.gspo import Gspo
from strop.train.reductions.sequence_mean import SequenceMean


def gspo(setting: Setting = Setting(), minibatches: int = 2) -> Run:
    """One length-normalised ratio per attempt; several steps per draw, where the clip matters."""
    return setting.run("gspo", GroupStandard(), (Gspo(),), reduction=SequenceMean(), minibatches=minibatches)
