"""The answer that most siblings give in place of a label (MM-UPT, 2505.22453), against a reward that says nothing.

Sums have one right answer each; where many answers are right, a majority is no label.
Papers: mm-upt
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.recipes.reward.mm_upt import mm_upt
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import NextSibling


def treatment(setting: Setting) -> Run:
    """Agreement with the most frequent answer of the group is paid."""
    sized = replace(setting, env="arithmetic:4", group_size=10, heldout_tasks=256, heldout_every=2)
    return mm_upt(sized)


def control(setting: Setting) -> Run:
    """The same reward for all."""
    return replace(treatment(setting), rewards=(Flat(),))


def negative(setting: Setting) -> Run:
    """As many rollouts are called right, but others: each gets the advantage of the sibling after it."""
    run = treatment(setting)
    return replace(run, advantage=NextSibling(run.advantage))


experiment = Experiment(
    key="mm-upt",
    claim="Without labels and at equal sampled tokens, paying for the answer that most siblings give has a higher mean "
    "held-out accuracy over the run than paying all alike, or than paying the sibling beside.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=40_000,
    metric="heldout_area",
)
