"""Thinking under a judge who reads responses alone (RLMT, 2509.20357) against no thinking, and a judge who reads all.

The judge is a rule that likes texts of the same letters as the right answer; it never learns which texts are right.
Papers: rlmt
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.replay.hir import Instructed
from strop.recipes.reward.rlmt.recipe import LikeAnswer, rlmt
from strop.recipes.setting import Setting
from strop.run import Run


def _run(setting: Setting, every: int) -> Run:
    return rlmt(replace(setting, env="arithmetic:4", heldout_tasks=256, heldout_every=every))


def treatment(setting: Setting) -> Run:
    """Thought, then the sum; the judge is shown the sum."""
    return _run(setting, 4)


def control(setting: Setting) -> Run:
    """Asked with "quick:", the policy says the sum at once, with a fifth of the tokens, and the judge reads it."""
    run, quick = _run(setting, 20), Instructed("quick")
    evaluation = replace(run.evaluation, strategy=quick)
    return replace(run, strategy=quick, rewards=(LikeAnswer(),), evaluation=evaluation)


def negative(setting: Setting) -> Run:
    """Thought, then the sum; the judge is shown both."""
    return replace(_run(setting, 4), rewards=(LikeAnswer(),))


experiment = Experiment(
    key="rlmt",
    claim="At equal sampled tokens, thinking under a judge who reads responses alone has a higher mean held-out "
    "accuracy over the run than answers without thought, or than thinking under a judge who reads the thoughts.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=60_000,
    metric="heldout_area",
)
