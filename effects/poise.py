"""POISE's baseline from the policy's own states (2605.07579) against DAPO's from eight siblings, at equal tokens.

Papers: poise
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.recipes.classics.dapo import dapo
from strop.recipes.setting import Setting
from strop.recipes.value.poise import poise
from strop.run import Run


def sized(setting: Setting, group_size: int) -> Setting:
    """64 rollouts per step, whatever the size of a group."""
    sizes = {"group_size": group_size, "groups_per_step": 64 // group_size}
    return replace(setting, env="countdown:4", heldout_tasks=384, **sizes)


def treatment(setting: Setting) -> Run:
    """Two rollouts per task; what one's states foretell is the other's baseline."""
    return poise(sized(setting, 2))


def control(setting: Setting) -> Run:
    """What the paper compares with: eight rollouts per task, groups without contrast thrown away."""
    return dapo(sized(setting, 8), minibatches=1)  # as many steps as the treatment


def negative(setting: Setting) -> Run:
    """A probe that learns from a reward that knows nothing."""
    return replace(treatment(setting), rewards=(Flat(),))


experiment = Experiment(
    key="poise",
    claim="At equal generated tokens, two rollouts per task with a baseline from hidden states reach a higher "
    "held-out accuracy than DAPO with eight.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=250_000,
)
