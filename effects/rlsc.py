"""Rollouts that count as much as the policy was sure of them (RLSC, 2506.06395), against rollouts that count alike.

Nobody says what is right in any arm. Rollouts are sampled at temperature 1, where there is something to be gained.
Papers: rlsc
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.reward.rlsc import rlsc
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import NextSibling


def treatment(setting: Setting) -> Run:
    """The probability of a rollout is its advantage."""
    sized = replace(setting, env="arithmetic:4", group_size=16, groups_per_step=4, heldout_tasks=256, heldout_every=4)
    return rlsc(sized)


def control(setting: Setting) -> Run:
    """The policy's own rollouts, all with the same advantage."""
    return replace(treatment(setting), advantage=Constant())


def negative(setting: Setting) -> Run:
    """Each rollout counts as much as the policy was sure of the one beside it."""
    run = treatment(setting)
    return replace(run, advantage=NextSibling(run.advantage))


experiment = Experiment(
    key="rlsc",
    claim="Without any reward and at equal sampled tokens, rollouts whose advantage is their own probability have a "
    "higher mean held-out accuracy over the run than rollouts that all count alike, or that have that of others.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=60_000,
    metric="heldout_area",
)
