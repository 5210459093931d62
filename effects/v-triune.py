"""A threshold on nearness that tightens (V-Triune, 2505.18129) against one that stays loose, and one left to
probability.

Numbers that are off by 10 or less pass the loose threshold; held-out accuracy counts exact ones alone.
Papers: v-triune
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import AnyThreshold
from strop.recipes.reward.v_triune.recipe import v_triune
from strop.recipes.reward.v_triune.reward import Overlap, Tightening
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupMean

STEPS = 45  # about as many as the tokens are enough for
LOOSE = ((1.0, 0.85),)
WIDTH = 130.0  # of intervals: being off by 10, as the bundled model's slips are at most, is an overlap of 0.857


def _run(setting: Setting) -> Run:
    """Advantage is not divided by the spread of a group, or nearly equal marks would count as much as right and
    wrong.
    """
    run = v_triune(replace(setting, env="arithmetic:5", heldout_tasks=256, heldout_every=4))
    return replace(run, advantage=GroupMean(), rewards=(Overlap(run.envs, WIDTH),))


def treatment(setting: Setting) -> Run:
    """0.85, then 0.95, then 0.99, which only the right number reaches."""
    run = _run(setting)
    return replace(run, rewards=(Tightening(run.rewards[0], STEPS),))


def control(setting: Setting) -> Run:
    """0.85 to the end."""
    run = _run(setting)
    return replace(run, rewards=(Tightening(run.rewards[0], STEPS, LOOSE),))


def negative(setting: Setting) -> Run:
    """Any threshold, task by task."""
    run = _run(setting)
    return replace(run, rewards=(AnyThreshold(run.rewards[0]),))


experiment = Experiment(
    key="v-triune",
    claim="At equal sampled tokens, a threshold on nearness that tightens ends at a higher held-out accuracy than one "
    "that stays loose, or than one that is left to chance.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=100_000,
)
