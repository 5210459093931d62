"""Where two attempts part: what the first of them wrote before that is nobody's merit and nobody's fault."""

from __future__ import annotations

from strop.types import Trajectory

_NAME = "pivot"  # the fact that holds the number of turns before


def num_before(attempt: Trajectory) -> int:
    """Tokens that it wrote before the turn at which another attempt took another way; 0: nobody did."""
    turns = int(attempt.facts.get(_NAME, 0.0))
    return sum(len(turn.tokens) for turn in attempt.turns[:turns])
