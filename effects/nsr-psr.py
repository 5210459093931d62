"""Learning from wrong rollouts alone (2506.01347) against learning from right ones alone: what happens to pass@8?

Papers: nsr-psr
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.controls import BestSibling, Flat
from strop.recipes.objective.nsr_psr import nsr_psr
from strop.recipes.setting import Setting
from strop.run import Run

ROLLOUTS = 8


def _run(setting: Setting, sides: str) -> Run:
    """Held-out accuracy is pass@8: every rollout of a task is paid what the best of them was."""
    setting = replace(setting, env="countdown:4", heldout_tasks=192, learning_rate=2e-5)
    run = nsr_psr(setting, sides)
    return replace(run, evaluation=replace(run.evaluation, rollouts=ROLLOUTS, rewards=(BestSibling(),)))


def treatment(setting: Setting) -> Run:
    """Push wrong rollouts down; right ones are left out."""
    return _run(setting, "negative")


def control(setting: Setting) -> Run:
    """Push right rollouts up; wrong ones are left out."""
    return _run(setting, "positive")


def negative(setting: Setting) -> Run:
    """Every rollout is called wrong."""
    return replace(treatment(setting), rewards=(Flat(0.0),))


experiment = Experiment(
    key="nsr-psr",
    claim="At equal generated tokens, training on wrong rollouts alone leaves a higher held-out pass@8 than training "
    "on right rollouts alone.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
)
