"""ALP (2506.05256): tokens cost the more, the more often a task is solved."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.adaptive_length import AdaptiveLength
from strop.train.advantages.group_standard import GroupStandard
from strop.train.losses.clip import Clip


def alp(setting: Setting = Setting(world="countdown:3"), beta: float = 1e-3, clip: float = 0.2) -> Run:
    """The paper's beta of 1e-7 is for answers a thousand times as long."""
    return setting.run("alp", AdaptiveLength(GroupStandard(), beta), (Clip(clip, clip),))
