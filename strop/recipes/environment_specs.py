"""Environments of recipes: metrics by environment, and wrappers around named ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.filter.rewards.from_environment import Checked, Earned
from strop.roles import Environment, Reward
from strop.run import Run

# The environments' own word on rollouts where a policy learns from something else.


def measured(envs: tuple[Environment, ...]) -> Reward:
    """What the environments would have paid: written down beside the reward, and without weight."""
    return Earned(weight=0.0) if all(env.pays for env in envs) else Checked(envs, weight=0.0)


# Runs in environments that are made of others, where a recipe asks another question about the tasks of a setting.


def wrap_envs(run: Run, wrap: Callable[[Environment], Sequence[Environment]]) -> None:
    """Put the environments that `wrap` makes in place of each, in warm-ups too: drawn equally often, paid by
    themselves.
    """
    if run.warmup is not None:
        wrap_envs(run.warmup, wrap)
    run.envs = tuple(made for env in run.envs for made in wrap(env))
    run.sampler = Uniform(run.envs)
    outcome: Reward = Earned() if all(env.pays for env in run.envs) else Checked(run.envs)
    run.rewards = (outcome,)
    run.evaluation = replace(run.evaluation, rewards=run.rewards)
