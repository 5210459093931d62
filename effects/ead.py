"""EAD (2510.05251), hot beginnings and cold ends, against sampling at one temperature: what eight rollouts find.

Held-out accuracy is that of the best of eight plain rollouts of temperature 1, so that a policy that lost its variety
shows it.
Papers: ead
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.strategies.best_of_n import BestOf
from strop.generate.strategies.independent import Independent
from strop.recipes.rollout.ead import ead
from strop.recipes.setting import Setting
from strop.run import Run

_ROLLOUTS = 8


def _setting(setting: Setting) -> Setting:
    return replace(setting, env="countdown:4", group_size=8, learning_rate=1e-4, heldout_tasks=128, heldout_every=50)


def _measured(run: Run) -> Run:
    return replace(run, evaluation=replace(run.evaluation, strategy=BestOf(_ROLLOUTS)))


def treatment(setting: Setting) -> Run:
    """Temperatures fall from 1.2 to 0.1 within a completion."""
    return _measured(ead(_setting(setting)))


def control(setting: Setting) -> Run:
    """The same at temperature 1 throughout."""
    return replace(treatment(setting), strategy=Independent())


def negative(setting: Setting) -> Run:
    """Temperatures rise from 0.1 to 1.2 by the same rule."""
    return _measured(ead(_setting(setting), is_late=True))


experiment = Experiment(
    key="ead",
    claim="At equal sampled tokens, completions that are hot at first and cold at last train a policy of whose eight "
    "rollouts more often one is right than after sampling at temperature 1.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
