"""Tool calls of a rollout, and the fewest calls of a task's successes."""

from __future__ import annotations

from strop.types import Rollout

LEAST = "least_calls"  # the fact of how few calls any earlier success at the task has made; missing: there was none
RIGHT = 0.8  # judgement of a rollout that is right enough


def calls_of(rollout: Rollout) -> int:
    """How many tool calls were answered."""
    return sum(message.role == "tool" for turn in rollout.turns for message in turn.told)
