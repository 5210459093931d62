"""ConciseR's second stage (2505.21178) against its first one gone on with: right answers in fewer tokens?

Papers: conciser
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.from_environment import Earned
from strop.recipes.objective.conciser import conciser
from strop.recipes.objective.gdpo import Brief
from strop.recipes.setting import Setting
from strop.run import Run

LIMIT = 22  # tokens: at the start, 46% of the rollouts are right and 21% are right within it


def _run(setting: Setting, stage: int) -> Run:
    """Held-out accuracy counts answers that are right within the limit, which no reward of training knows."""
    run = conciser(replace(setting, env="countdown:3", heldout_tasks=256), stage)
    both = (Earned(weight=0.5), Brief(LIMIT, weight=0.5))
    return replace(run, evaluation=replace(run.evaluation, rewards=both))


def treatment(setting: Setting) -> Run:
    """Length counts in groups that are all right, and those come as the policy gets better."""
    return _run(setting, 2)


def control(setting: Setting) -> Run:
    """Correctness alone; groups that are all right are dropped."""
    return _run(setting, 1)


def negative(setting: Setting) -> Run:
    """Every group is called all right: shortness without correctness."""
    return replace(treatment(setting), rewards=(Flat(),))


experiment = Experiment(
    key="conciser",
    claim="At equal generated tokens, letting length count where all rollouts are right reaches a larger held-out "
    "share of right answers within 22 tokens than training for correctness alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=300_000,
)
