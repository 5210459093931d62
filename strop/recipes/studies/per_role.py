"""A baseline per role, for agents in which one policy plays several."""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.per_role import PerRole
from strop.train.losses.clip import Clip


def per_role(
    setting: Setting = Setting(world="guess:2"),
    discount: float = 1.0,  # of rewards from turn to turn
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """With the plain agent there is one role, and every turn is compared with all turns of the group."""
    return setting.run("per_role", PerRole(discount), (Clip(clip, clip),))
