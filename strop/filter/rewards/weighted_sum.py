"""Weighted sum of several rewards as one, for recipes that shape what a run is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.filter.reward_values import RewardScores, shaped
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class WeightedSum(Reward):
    """Sum of the scores of `parts`, each times its weight; parts of weight 0 only say how right a rollout is."""

    parts: tuple[Reward, ...]
    weight: float = 1.0

    name: ClassVar[str] = "weighted_sum"

    @property
    def is_inline(self) -> bool:
        return all(part.is_inline for part in self.parts)

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, self._sums, *self.parts)

    def _sums(self, *scores: Sequence[float]) -> list[float]:
        weights = [part.weight for part in self.parts]
        return [sum(w * s for w, s in zip(weights, each, strict=True)) for each in zip(*scores, strict=True)]


def as_one(rewards: Sequence[Reward]) -> Reward:
    """The only reward, or the weighted sum of all."""
    return rewards[0] if len(rewards) == 1 else WeightedSum(tuple(rewards))
