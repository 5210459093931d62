"""Limits of a rollout, and special policy names that strategies request."""

from __future__ import annotations

from dataclasses import dataclass

# Values of `Sampling.policy_name` that strategies request and engines implement; a plain request has none.

REFERENCE = "reference"  # the model at the start of training
NOISE = "noise:"  # followed by the number of a noise level
ANNEALED = "annealed:"  # followed by the weight version at which the rollout was admitted


# Limits that end a rollout before it ends by itself.


class Paused(Exception):  # noqa: N818 (an event that `play` turns into an outcome)
    """Pause of a rollout at the token count set in its start."""


@dataclass(frozen=True)
class Limits:
    """Limits of one rollout over all its contexts; 0: no limit."""

    turns: int = 0
    tokens: int = 0


NO_LIMITS = Limits()
