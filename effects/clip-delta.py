"""Process rewards clipped and paid as differences (2410.15115) against their plain sum, which long completions exploit.

Completions to "search:" try one calculation after the other; each that holds is a right step, needed or not.
Papers: clip-delta
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.replay.hir import Instructed
from strop.recipes.reward.clip_delta import ClipDelta, clip_delta
from strop.recipes.setting import Setting
from strop.run import Run
from strop.standins.judges.steps import StepsAlike


def _run(setting: Setting, form: str) -> Run:
    sizes = {"max_tokens": 128, "heldout_tasks": 192, "heldout_every": 4}
    run = clip_delta(replace(setting, env="countdown:3", **sizes), form)
    searched = Instructed("search")
    return replace(run, strategy=searched, evaluation=replace(run.evaluation, strategy=searched))


def treatment(setting: Setting) -> Run:
    """A step earns by how much it is better than the next one, within what is clipped."""
    return _run(setting, "clip-delta")


def control(setting: Setting) -> Run:
    """Every right step earns."""
    return _run(setting, "raw")


def negative(setting: Setting) -> Run:
    """Every step earns, right or wrong."""
    run = control(setting)
    outcome, steps = run.rewards
    assert isinstance(steps, ClipDelta)
    return replace(run, rewards=(outcome, replace(steps, judge=StepsAlike())))


experiment = Experiment(
    key="clip-delta",
    claim="At equal sampled tokens, clipped differences of process rewards beside the task's own have a higher mean "
    "held-out accuracy over the run than their plain sum, or than a sum that knows "
    "nothing of right and wrong.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=100_000,
    metric="heldout_area",
)
