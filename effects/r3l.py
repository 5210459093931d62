"""R3L (2601.03715): a second try after `wrong, try again`, trained as if it had been the first, against none.

Papers: r3l
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.strategies.independent import Independent
from strop.recipes.rollout.r3l import r3l
from strop.recipes.setting import Setting
from strop.run import Run


def sums(setting: Setting) -> Setting:
    return replace(setting, env="arithmetic:6", heldout_tasks=256, heldout_every=4)


def treatment(setting: Setting) -> Run:
    """Of eight rollouts four are first ones; those that were wrong are tried again, and told without the first."""
    return r3l(sums(setting))


def control(setting: Setting) -> Run:
    """Eight first rollouts, with the same advantage and loss."""
    return replace(r3l(sums(setting)), strategy=Independent())


def negative(setting: Setting) -> Run:
    """Retries are trained behind what they read: the policy learns to mend, not to be right at first."""
    return r3l(sums(setting), strips=False)


experiment = Experiment(
    key="r3l",
    claim="At equal generated tokens, second tries that are trained without their guidance lift the held-out accuracy "
    "of first ones above that of training on first rollouts alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=100_000,
    metric="heldout_area",
)
