"""GRPO on environments in fixed proportions: the control of adaptive samplers.

Acts: uneven > 0
"""

from __future__ import annotations

from strop.control.samplers.fixed_mixture import Mixture
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def mixture(
    setting: Setting = Setting(env="arithmetic:4+countdown:3+compose:1"),
    weights: tuple[float, ...] = (
        2.0,
        1.0,
        1.0,
    ),  # sampling weights of the environments, in their order; 0: evaluated and never trained on
) -> Run:
    """Each task's environment is sampled in proportion to `weights`."""
    run = setting.run("mixture", GroupStandard(), (Clip(),), by_category=True)
    run.sampler = Mixture(run.envs, weights, setting.seed)
    return run
