"""What a process that runs foreign code answers, read as if an enemy had written it: exactly as expected, or no answer.

Answers are JSON objects, one a line. Nothing in them is executed, unpickled or believed beyond its type.
"""

from __future__ import annotations

import json
import math
from typing import Any

_SHOWN = 80


class NoAnswer(Exception):  # noqa: N818 (it says what happened)
    """The process hung, died, raised or answered with something else."""


def parsed(line: bytes) -> dict[str, Any]:
    """The object on a line."""
    try:
        answer = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"answered with something that is not JSON ({type(error).__name__})") from None
    if not isinstance(answer, dict):
        raise NoAnswer(f"answered {shown(answer)}, need an object")
    return answer


def entries(plain: Any, **kinds: Any) -> dict[str, Any]:
    """An object that has these entries of these types, and no others."""
    if not isinstance(plain, dict) or set(plain) != set(kinds):
        raise NoAnswer(f"answered {shown(plain)}, need an object of {', '.join(kinds) or 'nothing'}")
    for name, kind in kinds.items():
        if not isinstance(plain[name], kind):
            raise NoAnswer(f"answered {shown(plain[name])} for {name}, need {getattr(kind, '__name__', kind)}")
    return plain


def number(plain: Any) -> float:
    """A finite number."""
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        try:
            if math.isfinite(plain):
                return float(plain)
        except OverflowError:  # an integer beyond every float
            pass
    raise NoAnswer(f"answered {shown(plain)}, need a finite number")


def shown(plain: Any) -> str:
    """A value for a message, and not much of it."""
    return f"{type(plain).__name__} {str(plain)[:_SHOWN]}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
