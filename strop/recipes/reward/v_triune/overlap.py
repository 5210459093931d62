"""Interval overlap (IoU) reward for numeric answers, the one-dimensional form of a bounding-box reward.

V-Triune (2505.18129) rewards the intersection over union of boxes in images; here an interval is `width` wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.roles import Environment, Reward
from strop.types import Group, Outcome, ScoreRange
from strop.workers.foreign_checks import answered

_DIGITS = 18  # of the longest number that is read


@dataclass(frozen=True)
class Overlap(Reward):
    """(width - d) / (width + d) for an answer that is off by d < width, else 0; 0 without a number."""

    envs: tuple[Environment, ...]
    width: float = 40.0  # of an interval
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange()
    name: ClassVar[str] = "overlap"

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise ConfigurationError(f"Overlap needs a width > 0, got {self.width}")

    @property
    def is_inline(self) -> bool:
        return all(env.is_inline for env in self.envs)

    def __call__(self, group: Group) -> list[float]:
        env, right = env_of(self.envs, group.task), number_in(group.task.answer)
        if right is None:
            raise ConfigurationError(
                f"Overlap needs tasks whose answers are numbers, and that of {group.task.id} is {group.task.answer!r}"
            )
        given = [answered(env, t.completion) if t.outcome is Outcome.FINISHED else "" for t in group.rollouts]
        return [self._shared(number_in(answer), right) for answer in given]

    def _shared(self, answer: int | None, right: int) -> float:
        distance = self.width if answer is None else abs(answer - right)
        return max(0.0, self.width - distance) / (self.width + distance)


def number_in(text: str) -> int | None:
    """A whole number and nothing else; a longer one than any that is asked for is none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None
