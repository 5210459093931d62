"""ARRoL's head (2603.24840), which predicts midway who will be right, against no pruning and random pruning.

Papers: arrol
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.random_pruning_control import PrunedAtRandom
from strop.recipes.rollout.arrol import arrol
from strop.recipes.setting import Setting
from strop.run import Run

AT, KEEP = 16, 0.5
TARGET = 0.5  # held-out accuracy, from 0.1 at the start


def treatment(setting: Setting) -> Run:
    """Sixteen rollouts pause; about eight, evenly right and wrong as far as the head knows, go on."""
    run = arrol(replace(setting, env="arithmetic:6", group_size=16, heldout_tasks=384, heldout_every=5), AT, KEEP)
    return replace(run, evaluation=replace(run.evaluation, target=TARGET))


def control(setting: Setting) -> Run:
    """The same learner with all sixteen to their end."""
    return replace(treatment(setting), strategy=Independent())


def negative(setting: Setting) -> Run:
    """As many are given up at the same place, and nothing is known about them."""
    return replace(treatment(setting), strategy=PrunedAtRandom(AT, KEEP))


experiment = Experiment(
    key="arrol",
    claim="At equal generated tokens, giving up half of the rollouts midway by what a head predicts reaches a higher "
    "mean held-out accuracy over the run than playing all to their end, or giving up as many at random.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=150_000,
    metric="heldout_area",
)
