"""Sampler metrics: shares of environments, bandit arm values, spread of rewards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from strop.control.seeded_choice import Doubles
from strop.environments.data.lookup import env_of
from strop.roles import Environment
from strop.success import success
from strop.types import Group, Metrics

# What a run is told of a choice between arms.


def preference(probabilities: Doubles) -> float:
    """How far a choice is from an even one: the share of draws that would have to go elsewhere; 0 where it is even."""
    return float(np.abs(probabilities - 1 / len(probabilities)).sum() / 2)


def arm_metrics(envs: Sequence[Environment], probabilities: Doubles) -> Metrics:
    """The probability of each environment, and how far they are from even."""
    each = {f"probability/{env.name}:{env.level}": float(p) for env, p in zip(envs, probabilities, strict=True)}
    return {"preference": preference(probabilities), **each}


# Which environments the groups of a batch come from.


def shares(envs: Sequence[Environment], groups: Sequence[Group]) -> Metrics:
    """The share of each environment, and how far they are from even: 0 where all are equal, 1 - 1/W where one has
    all.
    """
    counts = Counter(id(env_of(envs, group.task)) for group in groups)
    found = {f"drawn/{env.name}-{env.level}": counts[id(env)] / max(len(groups), 1) for env in envs}
    even = 1 / len(envs)
    return found | {"uneven": sum(abs(share - even) for share in found.values()) / 2 if groups else 0.0}


# How unevenly the rollouts of a group ended, as the size of their advantages says it.

_ROUNDING = 1e-9


def contrasts(group: Group) -> Doubles:
    """|A| of each of the policy's own rollouts, A = (outcome - mean) / spread; 0 where all ended alike: [G].

    The spread is that of these rollouts alone and not an estimate beyond them: where the share p was right the mean is
    2 sqrt(p (1 - p)), in groups of any size. What is paid beside the environment's outcome changes nothing.
    """
    outcomes = np.array([success(rollout) for rollout in group.own], dtype=np.float64)
    if not len(outcomes) or float(np.ptp(outcomes)) <= _ROUNDING:
        return np.zeros(len(outcomes))
    return np.asarray(np.abs(outcomes - outcomes.mean()) / outcomes.std())
