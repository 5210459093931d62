"""Conversion between rollouts and rows of the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from strop.errors import DataError
from strop.storage.ledger.turn_bytes import decode_turns, encode_turns, message_from
from strop.types import Group, Origin, Outcome, Rollout, Task, Tool, Turn

_Key = TypeVar("_Key")
_SORTED = json.JSONEncoder(sort_keys=True)


def training_rows(step: int, slot: int, group: Group) -> list[tuple[Any, ...]]:
    """The rollouts of a drawn group that count, each with its advantage and, of this step alone, its ratios."""
    known = [(step, slot, place, group.number, t.id, _advantage(t), _ratios(t)) for place, t in enumerate(group.scored)]
    for each in group.scored:
        each.ratios = None  # it may be drawn again
    return known


def _ratios(trained: Rollout) -> bytes | None:
    """As float16: to be looked at."""
    return None if trained.ratios is None else trained.ratios.astype("<f2").tobytes()


def _advantage(trained: Rollout) -> bytes | None:
    """As float32: of every token, or once where all have the same."""
    advantage = trained.advantages
    if advantage is None:
        return None
    is_one = len(advantage) > 1 and bool((advantage == advantage[0]).all())
    return advantage[: 1 if is_one else None].astype("<f4").tobytes()


def with_advantages(trained: Rollout, advantage: bytes | None, ratios: bytes | None) -> Rollout:
    """A rollout with the advantage that it had in a step, and its ratios where they are known."""
    try:
        if advantage is not None:
            known = np.frombuffer(advantage, "<f4")
            trained.advantages = np.broadcast_to(known, trained.num_tokens) if len(known) < 2 else known
        trained.ratios = None if ratios is None else np.frombuffer(ratios, "<f2").astype(np.float32)
    except ValueError as error:
        raise _not_for(trained, str(error)) from error
    if any(each is not None and len(each) != trained.num_tokens for each in (trained.advantages, trained.ratios)):
        raise _not_for(trained, f"there are {trained.num_tokens} tokens")
    return trained


def _not_for(trained: Rollout, why: str) -> DataError:
    return DataError(f"the ledger cannot be read: rollout {trained.id}, columns advantage and ratios: {why}")


def rollout_row(rollout: Rollout, number: int, place: int | None) -> tuple[Any, ...]:
    """In the order of the table's columns; `place` is the rollout's in the group as it was kept."""
    failed = rollout.outcome is Outcome.FAILED
    return (
        rollout.id,
        number,
        rollout.task.id,
        rollout.parent,
        rollout.comparison_group,
        rollout.outcome.value,
        rollout.origin.value,
        rollout.reward if rollout.is_scored else None,
        _SORTED.encode(rollout.rewards),
        _SORTED.encode(rollout.facts) if rollout.facts else "{}",
        rollout.error,
        rollout.num_tokens,
        "failed" if failed else ("gated" if place is None else "waiting"),
        _SORTED.encode(rollout.turn_rewards) if rollout.turn_rewards else "[]",
        encode_turns(rollout.turns),
        place,
    )


def rollout_of(
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
    comparison_group: str,
    turns: bytes,
) -> Rollout:
    """The inverse, from the columns of `ROLLOUT`."""
    return Rollout(
        id_,
        task,
        turns_of(id_, turns),
        Outcome(outcome),
        Origin(origin),
        error,
        reward or 0.0,
        _numbers(id_, "rewards", json.loads(rewards)),
        tuple(_numbers(id_, "turn_rewards", dict(enumerate(json.loads(turn_rewards)))).values()),
        _numbers(id_, "facts", json.loads(facts)),
        parent,
        comparison_group,
    )


def turns_of(id_: str, turns: bytes) -> tuple[Turn, ...]:
    """The turns of a rollout, or DataError with its name."""
    try:
        return decode_turns(turns)
    except ValueError as error:
        raise DataError(f"the ledger cannot be read: rollout {id_}, column turns: {error}") from error


def _numbers(id_: str, column: str, found: dict[_Key, Any]) -> dict[_Key, float]:
    if not all(isinstance(each, float) or (isinstance(each, int) and abs(each) < 1 << 1000) for each in found.values()):
        raise DataError(f"the ledger cannot be read: rollout {id_}, column {column}: not all are numbers")
    return found


def task_of(id_: str, row: Sequence[Any]) -> Task:
    """A task from its other columns, or DataError with its name."""
    source, level, messages, answer, tools, columns = row
    try:
        asked = tuple(message_from(message) for message in json.loads(messages))
        offered = tuple(Tool(**tool) for tool in json.loads(tools))
        if not all(isinstance(word, str) for tool in offered for word in vars(tool).values()):
            raise ValueError("a tool is made of texts")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        told = f"{type(error).__name__}: {error}"
        raise DataError(f"the ledger cannot be read: task {id_}, columns messages and tools: {told}") from error
    return Task(asked, answer, source, level, id_, offered, columns)
