"""What counts as evidence of how hard a task is."""

from __future__ import annotations

from strop.types import Group, Trajectory


def success(attempt: Trajectory) -> float:
    """How right an attempt was, from 0 to 1: the world's own outcome where there is one, whatever else was paid."""
    return min(max(attempt.rewards.get("outcome", attempt.reward), 0.0), 1.0)


def successes(group: Group) -> tuple[float, int]:
    """How many of the policy's own attempts were right, and how many there were."""
    return sum(success(attempt) for attempt in group.own), len(group.own)
