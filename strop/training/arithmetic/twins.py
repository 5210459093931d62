"""Attempts that were made, and their twins: copies behind other messages
(`generate/strategies/support/rollout_twins.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Origin, Trajectory


def made(attempts: Sequence[Trajectory]) -> list[Trajectory]:
    """Those that are no twin."""
    return [attempt for attempt in attempts if not is_twin(attempt)]


def is_twin(attempt: Trajectory) -> bool:
    """What is replayed from elsewhere has no parent in its group."""
    return attempt.origin is Origin.REPLAYED and attempt.parent != ""
