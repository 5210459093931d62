"""GRPO with turn-level advantages: each turn's return against the sibling rollouts' same turn.

Acts: advantage_within > 0
"""

from __future__ import annotations

from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.per_turn import TurnMean
from strop.training.losses.clip import Clip


def turn_mean(
    setting: Setting = Setting(env="guess:2"),
    discount: float = 0.9,  # discount of rewards per turn
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """Discounted return from each turn on, so that earlier success has a larger advantage."""
    return setting.run("turn_mean", TurnMean(discount), (Clip(clip, clip),))
