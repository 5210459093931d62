"""Which worlds the groups of a draw come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strop.environments.data.lookup import world_of
from strop.roles import World
from strop.types import Group, Metrics


def shares(worlds: Sequence[World], groups: Sequence[Group]) -> Metrics:
    """The share of each world, and how far they are from even: 0 where all are equal, 1 - 1/W where one has all."""
    counts = Counter(id(world_of(worlds, group.task)) for group in groups)
    found = {f"drawn/{world.name}-{world.level}": counts[id(world)] / max(len(groups), 1) for world in worlds}
    even = 1 / len(worlds)
    return found | {"uneven": sum(abs(share - even) for share in found.values()) / 2 if groups else 0.0}
