"""GDPO's rewards standardised apart (2601.05242) against GRPO's standardised sum, for answers both right and brief.

Papers: gdpo
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.from_environment import Earned
from strop.recipes.objective.gdpo import Brief, gdpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard

LIMIT = 22  # tokens: at the start, 45% of the rollouts keep to it, 46% are right, and 21% do both


def treatment(setting: Setting) -> Run:
    """Two rewards, each standardised in its group; held-out accuracy counts answers that earn both."""
    run = gdpo(replace(setting, env="countdown:3", heldout_tasks=256), limit=LIMIT)
    both = (Earned(weight=0.5), Brief(LIMIT, weight=0.5))
    return replace(run, evaluation=replace(run.evaluation, rewards=both))


def control(setting: Setting) -> Run:
    """The same two rewards, summed and then standardised."""
    return replace(treatment(setting), advantage=GroupStandard())


def negative(setting: Setting) -> Run:
    """Standardised apart, and neither reward knows anything."""
    return replace(treatment(setting), rewards=(Flat(), Flat()))


experiment = Experiment(
    key="gdpo",
    claim="At equal generated tokens, standardising two rewards apart reaches a larger held-out share of answers that "
    "are both right and within the token limit than standardising their sum.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
