"""AMPO (2510.02227), teachers only where every rollout failed, against none and demonstrations in every group.

After 150,000 tokens it had lost 0.043.
Papers: ampo
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.guide.ampo import ampo
from strop.recipes.setting import Setting
from strop.run import Run

TRACES = 2


def treatment(setting: Setting) -> Run:
    """Two of eight rollouts make room for traces where nobody is right."""
    envs = "arithmetic:7+arithmetic:5"
    return ampo(replace(setting, env=envs, heldout_tasks=192, heldout_every=5), traces=TRACES)


def control(setting: Setting) -> Run:
    """The same learner without teachers."""
    return replace(treatment(setting), strategy=Independent())


def negative(setting: Setting) -> Run:
    """As many demonstrations in every group, whether they are needed or not."""
    return replace(treatment(setting), strategy=Demonstrated(Demonstrate(), TRACES))


experiment = Experiment(
    key="ampo",
    claim="At equal generated tokens, traces of several teachers where all rollouts failed reach a higher mean "
    "held-out accuracy on both levels over the run than no teachers, or as many demonstrations in every group.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=400_000,
    metric="heldout_area",
)
