"""Limits of a rollout, and the name under which strategies request the initial model."""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE = "reference"  # `Sampling.policy_name` of the model at the start of training


# Limits that end a rollout before it ends by itself.


class Paused(Exception):  # noqa: N818 (an event that `play` turns into an outcome)
    """Pause of a rollout at the token count set in its start."""


@dataclass(frozen=True)
class Limits:
    """Limits of one rollout over all its contexts; 0: no limit."""

    turns: int = 0
    tokens: int = 0


NO_LIMITS = Limits()
