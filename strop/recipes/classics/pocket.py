"""Quick start: GRPO on the bundled model, minutes on a laptop.

Acts: advantage > 0
"""

from __future__ import annotations

from strop.filter.rewards.controls import Flat
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def pocket(
    setting: Setting = Setting(steps=60, heldout_tasks=200),
    constant_reward: bool = False,  # negative control: accuracy must not change
) -> Run:
    """Chain sums with a scratchpad; `constant_reward=true` is the negative control, whose accuracy must not change."""
    run = setting.run("pocket", GroupStandard(), (Clip(),))
    if constant_reward:
        run.rewards = (Flat(),)
    return run
