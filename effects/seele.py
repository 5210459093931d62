"""SEELE (2509.06923), as much of a solution as makes half of the rollouts right, against none and other tasks' hints.

Papers: seele
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.environments.wrappers.wrong_controls import Misguided
from strop.generate.strategies.independent import Independent
from strop.recipes.guide.seele import ResponsiveHints, seele
from strop.recipes.setting import Setting
from strop.run import Run

TASKS = 1024  # so many that nothing is learned by heart


def treatment(setting: Setting) -> Run:
    """Four rounds of four rollouts, each shown what the rounds before ask for."""
    sized = replace(setting, env="arithmetic:6", group_size=4, heldout_tasks=384, heldout_every=5)
    return seele(sized, tasks=TASKS)


def control(setting: Setting) -> Run:
    """The same sixteen rollouts without hints."""
    return replace(treatment(setting), strategy=Independent())


def negative(setting: Setting) -> Run:
    """As much is shown, of the solutions of other tasks."""
    run = treatment(setting)
    return replace(run, strategy=ResponsiveHints(tuple(Misguided(env) for env in run.envs)))


experiment = Experiment(
    key="seele",
    claim="At equal generated tokens, hints as long as the rounds before ask for reach a higher mean held-out accuracy "
    "over the run than no hints, or hints of other tasks.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=150_000,
    metric="heldout_area",
)
