"""AReaL's decoupled objective (Fu et al., 2505.24298) against a policy gradient that ignores staleness, at lag 16.

Papers: areal
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.admission.exact_lag import ExactLag
from strop.effects import Experiment
from strop.filter.rewards.controls import Flat
from strop.recipes.setting import Setting
from strop.recipes.system.areal import areal
from strop.run import Run
from strop.training.losses.reinforce import Reinforce

LAG = 16


def treatment(setting: Setting) -> Run:
    """Weighed from the policy that sampled to the one before the step, then clipped."""
    setting = replace(setting, learning_rate=1e-4, lag=LAG, heldout_tasks=256)
    return replace(areal(setting), admission=ExactLag(LAG))


def control(setting: Setting) -> Run:
    """The same tokens pushed as if they were fresh."""
    return replace(treatment(setting), losses=(Reinforce(),))


def negative(setting: Setting) -> Run:
    """The decoupled objective that is told every rollout was right."""
    return replace(treatment(setting), rewards=(Flat(),))


experiment = Experiment(
    key="areal",
    claim="At a lag of 16 versions and equal generated tokens, the decoupled objective reaches a higher held-out "
    "accuracy than the policy gradient without a correction.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=120_000,
)
