"""Sampled rollouts, apart from their copies under other prompts (`generate/strategies/support/prompt_swap.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from strop.types import Origin, Rollout


def made(rollouts: Sequence[Rollout]) -> list[Rollout]:
    """The rollouts that were sampled, without copies."""
    return [rollout for rollout in rollouts if not is_twin(rollout)]


def is_twin(rollout: Rollout) -> bool:
    """Whether a rollout is a copy of a sibling; one replayed from elsewhere has no parent in its group."""
    return rollout.origin is Origin.REPLAYED and rollout.parent != ""
