"""Tool calls of an attempt, and how few have been enough."""

from __future__ import annotations

from strop.types import Trajectory

LEAST = "least_calls"  # the fact of how few calls any earlier success at the task has made; missing: there was none
RIGHT = 0.8  # judgement of an attempt that is right enough


def calls_of(attempt: Trajectory) -> int:
    """How many tool calls were answered."""
    return sum(message.role == "tool" for turn in attempt.turns for message in turn.told)
