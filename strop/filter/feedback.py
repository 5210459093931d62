"""What RLTF (2307.04349) says of a program that was tried: a number for all of it, and the place that is to blame.

Readings: what takes too much time, memory or output is a runtime error. An error of syntax in the last line is an
unexpected end, whatever its message. The price of a marked token is flat; the release divides and multiplies it by the
same length.
Papers: rltf
"""

from __future__ import annotations

from strop.environments.code_execution import Finding, Program, Trial

GREEDY, FEEDBACK = "greedy", "feedback"  # facts: what the greedy attempt was told, and what this one was
_COARSE = {Finding.RIGHT: 1.0, Finding.WRONG: -0.3, Finding.SYNTAX: -1.0}
_RUNTIME = -0.6
_TO_ONE = 1.3  # from -0.3, in proportion to the tests passed
_NOWHERE = frozenset(("IndentationError", "TabError"))
_EVERYWHERE = frozenset(("RecursionError",))


def coarse(trial: Trial, is_adaptive: bool = True) -> float:
    """1 where all tests pass, -0.3 where some do not, -0.6 for a runtime error, -1 for one of syntax.

    Adaptive: a program without errors rises from -0.3 towards 1 with the share of tests passed.
    """
    raised = _TO_ONE * trial.share if is_adaptive and trial.finding is Finding.WRONG else 0.0
    return _COARSE.get(trial.finding, _RUNTIME) + raised


def blamed(trial: Trial, program: Program, reply: str) -> tuple[int, int] | None:
    """Characters of the reply that the error is in: a line, or all of it; None where it cannot be said.

    All of it: what takes too long, goes too deep, or ends before it should. None: wrong answers and indentation.
    """
    lines = program.text.rstrip().split("\n")
    is_end = trial.finding is Finding.SYNTAX and trial.line >= len(lines)
    if trial.error in _NOWHERE or trial.finding in (Finding.RIGHT, Finding.WRONG):
        return None
    if trial.finding is Finding.TIME or trial.error in _EVERYWHERE or is_end:
        return 0, len(reply)
    return program.line(trial.line) if 0 < trial.line <= len(lines) else None
