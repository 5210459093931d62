"""Limits of a rollout, and names of policies that strategies ask for."""

from __future__ import annotations

from dataclasses import dataclass

# Names of policy names (`Sampling.policy_name`) that strategies ask for and engines know; a plain request has none.

REFERENCE = "reference"  # the model that training began with
NOISE = "noise:"  # and the number of a level
ANNEALED = "annealed:"  # and the version of the weights when the rollout was admitted


# What ends a rollout's talk before it comes to an end by itself.


class Paused(Exception):  # noqa: N818 (it says what happened; `play` turns it into an outcome)
    """A rollout wrote as many tokens as its start allows before it comes back."""


@dataclass(frozen=True)
class Limits:
    """What one rollout may spend in all its contexts together; 0: no limit."""

    turns: int = 0
    tokens: int = 0


NO_LIMITS = Limits()
