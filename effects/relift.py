"""ReLIFT (2506.07527), supervised steps on what nobody solved, against RL alone and demonstrations of other tasks.

On compose:2 60 supervised steps of eight demonstrations teach nothing (0.004 against 0.007).
Papers: relift
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.budgets.fixed import Fixed
from strop.effects import Experiment
from strop.generate.agents.wrong_demonstration_control import DemonstrateAnother
from strop.generate.strategies.independent import Independent
from strop.recipes.guide.relift import ShownWhenLost, relift
from strop.recipes.setting import Setting
from strop.run import Run


def treatment(setting: Setting) -> Run:
    """Each task that all eight rollouts failed at is shown once; a step on eight such follows the others."""
    return relift(replace(setting, env="arithmetic:7", heldout_tasks=384, heldout_every=5))


def control(setting: Setting) -> Run:
    """The same learner without demonstrations: where nobody is right, there is nothing to learn."""
    return replace(treatment(setting), strategy=Independent(), budget=Fixed(setting.group_size))


def negative(setting: Setting) -> Run:
    """As many demonstrations, each of another task than the one it stands behind."""
    run = treatment(setting)
    return replace(run, strategy=ShownWhenLost(DemonstrateAnother(run.envs)))


experiment = Experiment(
    key="relift",
    claim="At equal generated tokens, supervised steps on demonstrations of what nobody solved reach a higher mean "
    "held-out accuracy over the run than RL alone, or demonstrations of other tasks.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=250_000,
    metric="heldout_area",
)
