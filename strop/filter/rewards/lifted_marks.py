"""A reward model's low marks raised where a reply reasons (2505.22653): what it calls wrong may be its own mistake.

Papers: noisy-rewards
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class LiftedMarks(Reward):
    """s, what `model` says, or 0 where `layout` gives less than 1; below 1/2 it is min(1, s + gain * patterns)."""

    model: Reward  # marks from 0 to 1
    patterns: Reward  # from 0 to 1
    layout: Reward  # 1 where a reply is laid out as it must be
    gain: float = 0.1  # most that patterns add
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # where those it holds are
    name: ClassVar[str] = "lifted_marks"

    def __post_init__(self) -> None:
        if self.gain < 0:
            raise ConfigurationError(f"LiftedMarks needs a gain >= 0, got {self.gain}")

    def __call__(self, group: Group) -> list[float]:
        marks = (plain_marks(self, each, group) for each in (self.model, self.patterns, self.layout))
        return [self._mark(score, pattern, layout) for score, pattern, layout in zip(*marks, strict=True)]

    def _mark(self, score: float, pattern: float, layout: float) -> float:
        kept = score if layout >= 1 else 0.0
        return min(1.0, kept + self.gain * pattern) if kept < 0.5 else kept
