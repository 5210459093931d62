"""Mobile-R1 (2506.20332): single actions before whole tasks, against whole tasks alone, where few of them succeed.

The bundled model knows the format, so nothing is shown in any arm. On keyvalue:5 it was -0.012 (-0.041 to +0.016) with
60 versions of single actions and 120,000 tokens, and -0.030 (-0.062 to +0.002) with 100 versions and 160,000; on
search:3, where no rollout of an action found the right one, -0.155 (-0.655 to +0.346).
Papers: mobile-r1
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.agent.mobile_r1 import mobile_r1
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import NextSibling


def store(setting: Setting) -> Setting:
    return replace(setting, env="search:2", learning_rate=3e-5, heldout_tasks=256, heldout_every=2)


def treatment(setting: Setting) -> Run:
    """Actions first, then tasks."""
    return mobile_r1(store(setting), shown=0, until=20)


def control(setting: Setting) -> Run:
    """Tasks from the beginning."""
    return mobile_r1(store(setting), shown=0, until=0)


def negative(setting: Setting) -> Run:
    """The same two stages, in which each rollout has the advantage of the one beside it."""
    run = treatment(setting)
    return replace(run, advantage=NextSibling(run.advantage))


experiment = Experiment(
    key="mobile-r1",
    claim="Where few rollouts solve a task, a stage of single actions before that of whole tasks has a higher mean "
    "held-out accuracy over the run than whole tasks alone at equal sampled tokens.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=80_000,
    metric="heldout_area",
)
