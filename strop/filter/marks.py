"""What a reward said about each attempt: a finite number, or what was wrong instead of one."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from strop.processes.answers import NoAnswer, number, shown
from strop.roles import Reward
from strop.types import Group

_LONGEST_ERROR = 500


@dataclass(frozen=True)
class Fault:
    """Why there is no mark; a breach is a reward that broke its contract, which no attempt can cause."""

    text: str
    is_breach: bool = False
    is_whole: bool = False  # the call failed, so that the guilty attempt is not known


Mark: TypeAlias = float | Fault


def marked(reward: Reward, group: Group) -> list[Mark]:
    """One mark per attempt, whatever the reward does short of hanging or dying."""
    try:
        return marks_of(reward(group), len(group.trajectories))
    except Exception as error:
        fault = Fault(f"{type(error).__name__}: {error}"[:_LONGEST_ERROR], is_whole=True)
        return [fault] * len(group.trajectories)


def marks_of(returned: Any, count: int) -> list[Mark]:
    """Judge what a reward returned for `count` attempts."""
    if returned is None or isinstance(returned, str | bytes) or not hasattr(returned, "__len__"):
        problem = f"returned {_shown(returned)}, need a list of {count} numbers"
    elif len(returned) != count:
        problem = f"returned {len(returned)} values for {count} attempts"
    else:
        return [_mark(value) for value in returned]
    return [Fault(problem, is_breach=True, is_whole=True)] * count


def _mark(value: Any) -> Mark:
    is_number = isinstance(value, numbers.Real) or (hasattr(value, "__float__") and getattr(value, "ndim", 0) == 0)
    if not is_number:
        return Fault(f"returned {_shown(value)}, need a number", is_breach=True)
    mark = float(value)
    return mark if math.isfinite(mark) else Fault(f"returned {mark}, need a finite number")


def _shown(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r}"[:80]


def to_json(marks: Sequence[Mark]) -> list[Any]:
    """Marks as plain data."""
    return [[m.text, m.is_breach, m.is_whole] if isinstance(m, Fault) else m for m in marks]


def from_json(plain: Any, count: int) -> list[Mark]:
    """Marks from plain data that nobody vouches for."""
    if not isinstance(plain, list) or len(plain) != count:
        raise NoAnswer(f"answered {shown(plain)}, need {count} marks")
    return [_fault(mark) if isinstance(mark, list) else number(mark) for mark in plain]


def _fault(plain: list[Any]) -> Fault:
    match plain:
        case [str(text), bool(is_breach), bool(is_whole)]:
            return Fault(text[:_LONGEST_ERROR], is_breach, is_whole)
    raise NoAnswer(f"answered {shown(plain)}, need a text and two truth values")
