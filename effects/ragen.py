"""RAGEN (2504.20073): PPO on the quarter of groups that ended most unevenly, against PPO on all of them.

Of four environments one is solved and two are out of reach, so that three quarters of the groups say nothing; held-out
accuracy is that of the fourth. Where half of the groups said nothing (arithmetic:1+arithmetic:2+arithmetic:5+
arithmetic:6) it was -0.011 (-0.020 to -0.002), though +0.071 above any quarter.
Papers: ragen
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.agent.ragen import ragen
from strop.recipes.setting import Setting
from strop.run import Run

ENVS = "arithmetic:1+arithmetic:8+countdown:5+arithmetic:5"


def _run(setting: Setting, share: float = 0.25, by_chance: bool = False) -> Run:
    sizes = {"groups_per_step": 16, "group_size": 8, "heldout_tasks": 192, "heldout_every": 4}
    run = ragen(replace(setting, env=ENVS, learning_rate=1e-4, **sizes), share=share, by_chance=by_chance)
    return replace(run, evaluation=replace(run.evaluation, envs=run.envs[3:]))


def treatment(setting: Setting) -> Run:
    """The quarter with the largest spread of rewards."""
    return _run(setting)


def control(setting: Setting) -> Run:
    """All groups."""
    return _run(setting, share=1.0)


def negative(setting: Setting) -> Run:
    """Any quarter."""
    return _run(setting, by_chance=True)


experiment = Experiment(
    key="ragen",
    claim="Where three quarters of the tasks say nothing, PPO on the quarter of groups with the largest spread of "
    "rewards has a higher mean held-out accuracy over the run than PPO on all groups, or on any quarter, at equal "
    "sampled tokens.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=120_000,
    metric="heldout_area",
)
