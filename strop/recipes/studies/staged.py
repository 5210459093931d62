"""GRPO on one environment after the other, in the order they are named: the simplest curriculum.

Acts: stage > 0
"""

from __future__ import annotations

from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def staged(setting: Setting = Setting(env="arithmetic:3+arithmetic:4+arithmetic:5")) -> Run:
    """Every environment gets the same number of steps; the last one also gets the remainder."""
    run = setting.run("staged", GroupStandard(), (Clip(),), by_category=True)
    each = max(setting.steps // len(run.envs), 1)
    stages = tuple(Uniform((env,)) for env in run.envs)
    run.sampler = Staged(stages, (each,) * (len(stages) - 1))
    return run
