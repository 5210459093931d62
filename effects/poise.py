"""POISE's baseline from the policy's own states (2605.07579) against DAPO's from eight siblings, at equal tokens.

Papers: poise
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.constant import Constant
from strop.recipes.classics.dapo import dapo
from strop.recipes.setting import Setting
from strop.recipes.value.poise import poise
from strop.run import Run


def setting(seed: int, group_size: int) -> Setting:
    """64 attempts per step, whatever the size of a group."""
    return Setting(
        world="countdown:4",
        seed=seed,
        group_size=group_size,
        groups_per_step=64 // group_size,
        heldout_tasks=384,
        heldout_every=0,
    )


def treatment(seed: int) -> Run:
    """Two attempts per task; what one's states foretell is the other's baseline."""
    return poise(setting(seed, 2))


def control(seed: int) -> Run:
    """What the paper compares with: eight attempts per task, groups without contrast thrown away."""
    return dapo(setting(seed, 8))


def negative(seed: int) -> Run:
    """A probe that learns from a reward that knows nothing."""
    return replace(treatment(seed), rewards=(Constant(),))


experiment = Experiment(
    key="poise",
    claim="At equal generated tokens, two attempts per task with a baseline from hidden states reach a higher "
    "held-out accuracy than DAPO with eight.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=250_000,
)
