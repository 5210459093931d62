"""GDPO (2601.05242): right and brief, each reward standardised in its group before they are added."""

from __future__ import annotations

from strop.filter.rewards.brief import Brief
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.decoupled_standard import DecoupledStandard
from strop.train.losses.clip import Clip
from strop.train.reductions.sequence_mean import SequenceMean


def gdpo(setting: Setting = Setting(world="countdown:3"), limit: int = 22, clip: float = 0.2) -> Run:
    """The world's reward, and a second one for at most `limit` tokens."""
    run = setting.run("gdpo", DecoupledStandard(), (Clip(clip, clip),), reduction=SequenceMean())
    run.rewards = (*run.rewards, Brief(limit))
    return run
