"""Rows of the ledger: an attempt as a row, and a row as an attempt."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from strop.disk.turns import decode_turns, encode_turns
from strop.types import Group, Origin, Outcome, Task, Trajectory

_SORTED = json.JSONEncoder(sort_keys=True)


def training_rows(step: int, slot: int, group: Group) -> list[tuple[Any, ...]]:
    """The attempts of a drawn group that count, each with its credit and, of this step alone, its ratios."""
    known = [(step, slot, place, group.number, t.id, _credit(t), _ratios(t)) for place, t in enumerate(group.scored)]
    for each in group.scored:
        each.ratios = None  # it may be drawn again
    return known


def _ratios(trained: Trajectory) -> bytes | None:
    """As float16: to be looked at."""
    return None if trained.ratios is None else trained.ratios.astype("<f2").tobytes()


def _credit(trained: Trajectory) -> bytes | None:
    """As float32: of every token, or once where all have the same."""
    credit = trained.advantages
    if credit is None:
        return None
    is_one = len(credit) > 1 and bool((credit == credit[0]).all())
    return credit[: 1 if is_one else None].astype("<f4").tobytes()


def credited(trained: Trajectory, credit: bytes | None, ratios: bytes | None) -> Trajectory:
    """An attempt with the credit that it had in a step, and its ratios where they are known."""
    if credit is not None:
        known = np.frombuffer(credit, "<f4")
        trained.advantages = np.broadcast_to(known, trained.num_tokens) if len(known) < 2 else known
    trained.ratios = None if ratios is None else np.frombuffer(ratios, "<f2").astype(np.float32)
    return trained


def attempt_row(trajectory: Trajectory, number: int, place: int | None) -> tuple[Any, ...]:
    """In the order of the table's columns; `place` is the attempt's in the group as it was kept."""
    failed = trajectory.outcome is Outcome.FAILED
    return (
        trajectory.id,
        number,
        trajectory.task.id,
        trajectory.parent,
        trajectory.family,
        trajectory.outcome.value,
        trajectory.origin.value,
        trajectory.reward if trajectory.is_scored else None,
        _SORTED.encode(trajectory.rewards),
        _SORTED.encode(trajectory.facts) if trajectory.facts else "{}",
        trajectory.error,
        trajectory.num_tokens,
        "failed" if failed else ("gated" if place is None else "waiting"),
        _SORTED.encode(trajectory.turn_rewards) if trajectory.turn_rewards else "[]",
        encode_turns(trajectory.turns),
        place,
    )


def trajectory_of(
    task: Task,
    id_: str,
    outcome: str,
    origin: str,
    error: str,
    reward: float | None,
    rewards: str,
    turn_rewards: str,
    facts: str,
    parent: str,
    family: str,
    turns: bytes,
) -> Trajectory:
    """The inverse, from the columns of `ATTEMPT`."""
    return Trajectory(
        id_,
        task,
        decode_turns(turns),
        Outcome(outcome),
        Origin(origin),
        error,
        reward or 0.0,
        json.loads(rewards),
        tuple(json.loads(turn_rewards)),
        json.loads(facts),
        parent,
        family,
    )
