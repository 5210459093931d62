"""Attempts that count as much as the policy was sure of them (RLSC, 2506.06395), against attempts that count alike.

Nobody says what is right in any arm. Attempts are sampled at temperature 1, where there is something to be gained.
Papers: rlsc
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.reward.rlsc import rlsc
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.next_sibling import NextSibling


def treatment(setting: Setting) -> Run:
    """The chance of an attempt is its credit."""
    sized = replace(setting, world="arithmetic:4", group_size=16, groups_per_step=4, heldout_tasks=256, heldout_every=4)
    return rlsc(sized)


def control(setting: Setting) -> Run:
    """The policy's own attempts, all with the same credit."""
    return replace(treatment(setting), advantage=Constant())


def negative(setting: Setting) -> Run:
    """Each attempt counts as much as the policy was sure of the one beside it."""
    run = treatment(setting)
    return replace(run, advantage=NextSibling(run.advantage))


experiment = Experiment(
    key="rlsc",
    claim="Without any reward and at equal sampled tokens, attempts credited with their own chance have a higher mean "
    "held-out accuracy over the run than attempts that all count alike, or that have the credit of others.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=60_000,
    metric="heldout_area",
)
