"""Runs in worlds that are made of others, where a recipe asks another question about the tasks of a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.roles import Reward, World
from strop.run import Run


def wrap_worlds(run: Run, wrap: Callable[[World], Sequence[World]]) -> None:
    """Put the worlds that `wrap` makes in place of each, in warm-ups too: drawn equally often, paid by themselves."""
    if run.warmup is not None:
        wrap_worlds(run.warmup, wrap)
    run.worlds = tuple(made for world in run.worlds for made in wrap(world))
    run.sampler = Uniform(run.worlds)
    outcome: Reward = Earned() if all(world.pays for world in run.worlds) else Checked(run.worlds)
    run.rewards = (outcome,)
    run.evaluation = replace(run.evaluation, rewards=run.rewards)
