"""Which environments the groups of a batch come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strop.environments.data.lookup import env_of
from strop.roles import Environment
from strop.types import Group, Metrics


def shares(envs: Sequence[Environment], groups: Sequence[Group]) -> Metrics:
    """The share of each environment, and how far they are from even: 0 where all are equal, 1 - 1/W where one has
    all.
    """
    counts = Counter(id(env_of(envs, group.task)) for group in groups)
    found = {f"drawn/{env.name}-{env.level}": counts[id(env)] / max(len(groups), 1) for env in envs}
    even = 1 / len(envs)
    return found | {"uneven": sum(abs(share - even) for share in found.values()) / 2 if groups else 0.0}
