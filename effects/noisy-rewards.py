"""Rewards that are flipped for four tasks of ten (2505.22653) against a reward that says nothing, and against a coin's.

Half of all tasks flipped is a reward that knows nothing and still tells siblings apart.
Papers: noisy-rewards
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.recipes.reward.noisy_rewards.recipe import noisy_rewards
from strop.recipes.setting import Setting
from strop.run import Run


def _run(setting: Setting, share: float) -> Run:
    sized = replace(setting, env="arithmetic:4", groups_per_step=16, heldout_tasks=256, heldout_every=4)
    return noisy_rewards(sized, share)


def treatment(setting: Setting) -> Run:
    """Four tasks of ten pay for wrong answers and six for right ones."""
    return _run(setting, 0.4)


def control(setting: Setting) -> Run:
    """The same reward for all."""
    return replace(treatment(setting), rewards=(Flat(),))


def negative(setting: Setting) -> Run:
    """Five tasks of ten pay for wrong answers."""
    return _run(setting, 0.5)


experiment = Experiment(
    key="noisy-rewards",
    claim="At equal sampled tokens, rewards flipped for 40 % of the tasks still have a higher mean held-out accuracy "
    "over the run than a reward that says nothing, or than rewards flipped for half of the tasks.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=100_000,
    metric="heldout_area",
)
