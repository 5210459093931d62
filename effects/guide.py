"""Guide (2506.13923), a hint only where every rollout failed, against no second wave and hints of other tasks.

With groups of eight the first wave is seldom lost for long, and hints changed nothing (-0.004).
Papers: guide
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.budgets.fixed import Fixed
from strop.effects import Experiment
from strop.environments.wrappers.wrong_controls import Misguided
from strop.generate.strategies.independent import Independent
from strop.recipes.guide.guide import HintedWhenLost, guide
from strop.recipes.setting import Setting
from strop.run import Run


def treatment(setting: Setting) -> Run:
    """Where all four failed, four more read the first step, and are trained as if they had not."""
    return guide(replace(setting, env="arithmetic:6", group_size=4, heldout_tasks=384, heldout_every=5))


def control(setting: Setting) -> Run:
    """The same learner without a second wave: tasks that nobody solves are dropped."""
    run = treatment(setting)
    return replace(run, strategy=Independent(), budget=Fixed(setting.group_size))


def negative(setting: Setting) -> Run:
    """A second wave whose hints are about other tasks."""
    run = treatment(setting)
    return replace(run, strategy=HintedWhenLost(tuple(Misguided(env) for env in run.envs)))


experiment = Experiment(
    key="guide",
    claim="At equal generated tokens, hints where all rollouts failed, which training does not see, reach a higher "
    "mean held-out accuracy over the run than no second wave, or hints of other tasks.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=150_000,
    metric="heldout_area",
)
