"""Advantage by turn in environments of several turns: each turn against the siblings' same turn.

Acts: credit_within > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.turn_mean import TurnMean
from strop.training.losses.clip import Clip


def turn_mean(
    setting: Setting = Setting(env="guess:2"),
    discount: float = 0.9,  # of rewards from turn to turn
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """What was paid from a turn on, discounted, so that success soon is better than success late."""
    return setting.run("turn_mean", TurnMean(discount), (Clip(clip, clip),))
