"""DigiRL (2406.11896): imitate rollouts that beat what their task let expect, against those that simply succeeded.

Easy tasks are mixed with hard ones, on which a success says more; held-out accuracy is that of the hard ones.
On guess:1+guess:3 it was +0.027 (-0.046 to +0.101).
Papers: digirl
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from strop.effects import Experiment
from strop.recipes.agent.digirl import digirl
from strop.recipes.setting import Setting
from strop.run import Run


def _run(setting: Setting, by: Literal["instruction", "reward", "random"]) -> Run:
    sizes = {"groups_per_step": 16, "group_size": 4, "heldout_tasks": 192, "heldout_every": 5}
    run = digirl(replace(setting, env="keyvalue:1+keyvalue:4", learning_rate=5e-5, **sizes), share=0.2, by=by)
    return replace(run, evaluation=replace(run.evaluation, envs=run.envs[1:]))


def treatment(setting: Setting) -> Run:
    """A fifth of the rollouts, by reward beyond what the task let expect."""
    return _run(setting, "instruction")


def control(setting: Setting) -> Run:
    """As many successes."""
    return _run(setting, "reward")


def negative(setting: Setting) -> Run:
    """As many rollouts, any."""
    return _run(setting, "random")


experiment = Experiment(
    key="digirl",
    claim="Where easy and hard tasks are mixed, imitating the rollouts that beat what their task let expect has a "
    "higher mean held-out accuracy over the run on the hard ones than imitating as many successes, or any rollouts.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=120_000,
    metric="heldout_area",
)
