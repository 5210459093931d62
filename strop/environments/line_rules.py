"""What a teacher does to one line of a program (2502.01715): another spelling of it, or a small mistake; rules here.

Whether a program still does what it should is for tests to say: some mistakes change nothing.
Papers: prlcoder
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_NUMBER = re.compile(r"\d+")
_SUM = re.compile(r"\bx([+*])(\d+)")
_WORKED = re.compile(r"(return |x=)(.+)")
_SWAPPED = {"+": "-", "-": "+", "*": "+", "%": "*", ">": "<"}
_SIGN = re.compile(r"(?<=[xi])[+\-*%>](?=\d)")


def refactored(line: str, stream: random.Random) -> str:
    """Another spelling that means the same."""
    turned = _SUM.sub(r"\2\1x", line, count=1)
    bracketed = _WORKED.sub(r"\1(\2)", line, count=1)
    return stream.choice([each for each in (turned, bracketed) if each != line] or [line])


def mutated(line: str, stream: random.Random) -> str:
    """A number or an operation that is another one; a line with neither does nothing at all."""
    ways: list[Callable[[str], str]] = []
    if _NUMBER.search(line):
        ways.append(lambda text: _NUMBER.sub(lambda found: str(int(found.group()) + 1), text, count=1))
    if _SIGN.search(line):
        ways.append(lambda text: _SIGN.sub(lambda found: _SWAPPED[found.group()], text, count=1))
    if not ways and _WORKED.search(line):
        ways.append(lambda text: _WORKED.sub(r"\1x", text, count=1))
    return stream.choice(ways)(line) if ways else line


def rewritten(program: str, key: int) -> tuple[str, int]:
    """The program with one line behind its head rewritten, and the number of that line; half of them by a mistake."""
    stream = random.Random(key)
    lines = program.split("\n")
    at = stream.randrange(1, len(lines))
    lines[at] = (mutated if stream.random() < 0.5 else refactored)(lines[at], stream)
    return "\n".join(lines), at + 1
