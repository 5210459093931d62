"""Supervised warm-up on demonstrations, for formats that the bundled model was not trained on."""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood

_EXAMPLES = 64  # demonstrations per step
_RATE = 5e-4  # learning rate; 20 such steps take passages from 1 to 90 % right


def shown(setting: Setting, recipe: str, steps: int) -> Run | None:
    """A warm-up run of `steps` supervised steps on the environments' demonstrations; None for 0 steps."""
    taught = replace(
        setting, steps=steps, group_size=1, groups_per_step=_EXAMPLES, learning_rate=_RATE, heldout_every=0
    )
    return taught.run(recipe, Constant(), (Likelihood(),), agent=Demonstrate()) if steps else None
