"""Rollouts that were made, and their twins: copies behind other messages
(`generate/strategies/support/prompt_swap.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Origin, Rollout


def made(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """Those that are no twin."""
    return [rollout for rollout in rollouts if not is_twin(rollout)]


def is_twin(rollout: Rollout) -> bool:
    """What is replayed from elsewhere has no parent in its group."""
    return rollout.origin is Origin.REPLAYED and rollout.parent != ""
