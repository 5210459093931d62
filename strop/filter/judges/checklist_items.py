"""Checklist judging: prompts for writing a checklist and for scoring one item, and the parsers of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strop.environments.data.rows import columns_of
from strop.filter.judges.readers import Number, weighted
from strop.types import Rollout, Task

FACT = "item/"  # before an item's number: its score from 0 to 1, among a rollout's facts
SCORE = Number(0, 100)  # the form of an answer


@dataclass(frozen=True)
class Item:
    """Requirement on a completion, with a weight from 0 to 100."""

    weight: float
    text: str


EVERYWHERE = Item(100.0, "It answers what was asked, in a fitting manner.")
WANTED = (
    "Write a checklist for completions to this task: one requirement per line, each with its importance from 0 to 100 "
    "before it, as in 80: It names the author."
)
JUDGED = (
    "How well does the completion meet the requirement, from 0 (not at all) to 100 (fully)? Answer with the number."
)


def items_in(text: str) -> list[Item]:
    """The items of a checklist, one per line; those that do not matter are left out, and so are lines without any."""
    items = [Item(min(weight, 100.0), said) for weight, said in weighted(text)]
    return [item for item in items if item.weight > 0]


_TEXTS, _WEIGHTS = ("criterion", "requirement", "text", "description"), ("points", "weight", "importance")


def items_of_row(task: Task, column: str, usual: float) -> list[Item]:
    """The requirements that a row brings; none where it has no such column.

    The column is a text with a requirement per line, perhaps with its weight before it, or a list of texts or of
    objects with a `criterion` and its `points`; without a weight it has the `usual` one.
    """
    given = columns_of(task).get(column)
    lines = given.splitlines() if isinstance(given, str) else given if isinstance(given, list) else []
    return [item for line in lines if (item := _item(line, usual)) is not None]


def _item(line: Any, usual: float) -> Item | None:
    if isinstance(line, dict):
        text = next((str(line[name]) for name in _TEXTS if line.get(name)), "")
        weight = next((line[name] for name in _WEIGHTS if isinstance(line.get(name), int | float)), usual)
        return Item(float(weight), text) if text else None
    found = weighted(line) if isinstance(line, str) else []
    if found:
        return Item(*found[0])
    return Item(usual, line.strip("-* \t")) if isinstance(line, str) and line.strip() else None


def widest_gap(rollouts: Sequence[Rollout]) -> float:
    """The largest difference on a single item that all of them were judged by."""
    names = [name for name in rollouts[0].facts if name.startswith(FACT)] if rollouts else []
    judged = [[each.facts[name] for each in rollouts] for name in names if all(name in each.facts for each in rollouts)]
    return max((max(scores) - min(scores) for scores in judged), default=0.0)
