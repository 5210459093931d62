"""Rewards of V-Triune (2505.18129): interval overlap (IoU) of numbers, and a threshold that rises over training.

V-Triune rewards the intersection over union of boxes in images; here an interval is `width` wide. Training progress is
the weight version at which the group was admitted, so that a resumed run continues the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.data.lookup import env_of
from strop.errors import ConfigurationError
from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Environment, Reward
from strop.success import success
from strop.types import Group, Metrics, Outcome, Rollout, ScoreRange
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


@dataclass(frozen=True)
class Tightening(Reward):
    """Success by `inner` if it reaches the current threshold, else 0; each one applies up to a share of all steps."""

    inner: Reward
    total: int  # steps of the whole training
    thresholds: tuple[tuple[float, float], ...] = ((0.10, 0.85), (0.25, 0.95), (1.0, 0.99))  # (up to, threshold)
    weight: float = 1.0

    name: ClassVar[str] = "tightening"
    needs_success: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __post_init__(self) -> None:
        shares = [share for share, _ in self.thresholds]
        if self.total < 1 or not shares or shares != sorted(shares):
            raise ConfigurationError(
                f"Tightening needs total >= 1 and thresholds by ascending shares, got {self.total} and {shares}"
            )

    def threshold(self, version: int) -> float:
        """At a step; the last one holds for all that comes later."""
        done = version / self.total
        return next((threshold for share, threshold in self.thresholds if done <= share), self.thresholds[-1][1])

    def __call__(self, group: Group) -> RewardScores:
        least = self.threshold(group.version)
        return shaped(self, group, lambda _: [_at_least(least, rollout) for rollout in group.rollouts], self.inner)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Says what was asked for in this batch; nothing is remembered."""
        asked = [self.threshold(group.version) for group in groups]
        return {"threshold": sum(asked) / len(asked)} if asked else {}


def _at_least(least: float, rollout: Rollout) -> float:
    return worth if (worth := success(rollout)) >= least else 0.0
