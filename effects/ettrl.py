"""Forks where the policy is uncertain (ETTRL, 2508.11356) against independent rollouts, and against forks anywhere.

What forks are to bring is coverage: more tasks of which some rollout is right, from the same sampled tokens. So all
arms learn from the environment's own pay; at one right rollout in ten, the majority's answer is no label.

Papers: ettrl
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.filter.rewards.from_environment import Earned
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.random_fork_control import RandomForks
from strop.recipes.rollout.ettrl import ettrl
from strop.recipes.setting import Setting
from strop.run import Run

ROOTS, POSITIONS, BRANCHES = 4, 2, 2
ALONE = 12  # independent rollouts with about as many tokens: branches write half of a completion


def _run(setting: Setting, group_size: int) -> Run:
    sized = replace(setting, env="arithmetic:6", group_size=group_size, heldout_tasks=384, heldout_every=5)
    return replace(ettrl(sized, POSITIONS, BRANCHES), rewards=(Earned(),))


def treatment(setting: Setting) -> Run:
    """Four roots, each with two branches from its two most uncertain tokens: 20 rollouts."""
    return _run(setting, ROOTS)


def control(setting: Setting) -> Run:
    """Twelve rollouts from the start, with the same advantage."""
    return replace(_run(setting, ALONE), strategy=Independent())


def negative(setting: Setting) -> Run:
    """As many branches, from any two tokens."""
    return replace(treatment(setting), strategy=RandomForks(POSITIONS, BRANCHES))


experiment = Experiment(
    key="ettrl",
    claim="At equal sampled tokens, forks at uncertain tokens have a higher mean held-out accuracy over the run than "
    "independent rollouts, or forks at random tokens.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=200_000,
    metric="heldout_area",
)
