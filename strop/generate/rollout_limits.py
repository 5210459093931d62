"""What ends a rollout's talk before it comes to an end by itself."""

from __future__ import annotations

from dataclasses import dataclass


class Paused(Exception):  # noqa: N818 (it says what happened; `play` turns it into an outcome)
    """A rollout wrote as many tokens as its start allows before it comes back."""


@dataclass(frozen=True)
class Limits:
    """What one rollout may spend in all its contexts together; 0: no limit."""

    turns: int = 0
    tokens: int = 0


NO_LIMITS = Limits()
