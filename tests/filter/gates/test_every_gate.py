"""Every gate of the room: what the environment failed and what was given up never passes, and never decides."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import pytest

import strop.filter.gates as room
from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.types import Group, Origin
from tests.building import make_group
from tests.rooms import kinds_of

REQUIRED: dict[str, Any] = {"side": "right", "policy_names": ("other",)}  # fields without a default


def gates() -> list[type]:
    return [kind for kind in kinds_of(room, Gate) if is_dataclass(kind) and "__call__" in vars(kind)]


def made(kind: type) -> Gate:
    needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    gate: Gate = kind(**{name: REQUIRED[name] for name in needed})
    return gate


def group_of(rewards: list[float], pruned: list[int], failed: list[int]) -> Group:
    group = make_group(rewards, [index + 2 for index in range(len(rewards))], failed, pruned=pruned)
    for rollout in group.rollouts[2:4]:
        rollout.origin = Origin.TEACHER  # for the gate that pairs them
    return group


def decided(gate: Gate, group: Group) -> list[str] | str | None:
    """Who is kept, or what a gate that takes only groups of another kind says."""
    try:
        kept = gate(group).group
    except ConfigurationError as error:
        return str(error)
    return None if kept is None else [rollout.id for rollout in kept.scored]


@pytest.mark.parametrize("kind", gates(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rewards", [[1.0, 0.0, 1.0, 0.0], [0.0] * 4, [1.0] * 4])
def test_rollouts_that_do_not_count_decide_nothing(kind: type, rewards: list[float]) -> None:
    gate = made(kind)
    plain = decided(gate, group_of(rewards, [], []))
    assert repr(gate) == repr(made(kind)) and gate == made(kind)  # what it has seen is no setting
    assert plain == decided(made(kind), group_of([*rewards, 1.0, 0.0, 1.0, 0.0], [4, 5], [6, 7]))


def test_the_room_was_found() -> None:
    assert len(gates()) >= 11
