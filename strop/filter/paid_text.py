"""What a reward may say beside a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A place in a completion that a reward pays: characters `start` to `end` of turn number `turn`.

    `value` is paid at its last token, `each` at every token; under `name` its tokens are scored in `Turn.aux`.
    """

    turn: int
    start: int
    end: int
    value: float = 0.0
    each: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Paid:
    """What a reward says of a rollout as a whole, and of places in it; the reward is the sum of all."""

    end: float
    spans: tuple[Span, ...] = ()
