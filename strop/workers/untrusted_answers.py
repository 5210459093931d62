"""Strict reading of answers from a process that runs foreign code: exactly the expected types, or an error.

Nothing in an answer is executed or unpickled.
"""

from __future__ import annotations

from typing import Any

_SHOWN = 80
LARGEST = 1e12  # of numbers that are added and squared later, in single precision too


class NoAnswer(Exception):  # noqa: N818 (it says what happened)
    """Process that hung, died, raised or answered with something else."""

    is_spent = False  # time, memory or stack ran out: perhaps the completion's doing


class TooLate(NoAnswer):
    """Process that is alive and did not answer within its deadline."""

    is_spent = True


class Died(NoAnswer):
    """Process that ended before it answered."""


def entries(plain: Any, **kinds: Any) -> dict[str, Any]:
    """An object that has these entries of these types, and no others."""
    if not isinstance(plain, dict) or set(plain) != set(kinds):
        raise NoAnswer(f"answered {shown(plain)}, need an object of {', '.join(kinds) or 'nothing'}")
    for name, kind in kinds.items():
        if not isinstance(plain[name], kind):
            raise NoAnswer(f"answered {shown(plain[name])} for {name}, need {getattr(kind, '__name__', kind)}")
    return plain


def number(plain: Any) -> float:
    """A number of at most `LARGEST`, either way."""
    if isinstance(plain, int | float) and not isinstance(plain, bool) and abs(plain) <= LARGEST:
        return float(plain)
    raise NoAnswer(f"answered {shown(plain)}, need a finite number of at most {LARGEST:g}")


def shown(plain: Any) -> str:
    """A value for a message, and not much of it."""
    try:
        text = str(plain)[:_SHOWN]
    except (RecursionError, ValueError):  # nested too deep, an integer of too many digits
        text = "that cannot be shown"
    return f"{type(plain).__name__} {text}"
