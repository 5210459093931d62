"""Runs in environments that are made of others, where a recipe asks another question about the tasks of a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strop.control.samplers.uniform import Uniform
from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.roles import Environment, Reward
from strop.run import Run


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
