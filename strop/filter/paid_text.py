"""Structured result of a reward function: a total, and rewards of character spans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Rewarded span of a completion: characters `start` to `end` of turn number `turn`.

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
    """Reward of a whole rollout and of spans in it; their sum is the rollout's reward."""

    end: float
    spans: tuple[Span, ...] = ()


def total(score: float | Paid) -> float:
    """A score as one number; what is paid for each token is left out."""
    return score.end + sum(span.value for span in score.spans) if isinstance(score, Paid) else score
