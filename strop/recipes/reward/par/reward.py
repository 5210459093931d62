"""Preference-as-reward shaping (PAR, 2502.18770): the sigmoid of the score difference to reference rollouts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.roles import Reward
from strop.types import Group, Origin, Rollout


@dataclass(frozen=True)
class Preferred(Reward):
    """Mean over reference rollouts of sigmoid(scale * (score - reference score)), bounded between 0 and 1.

    Scores are of `inner`, less `price` for each token beyond `free`, subtracted before the sigmoid as released.
    Reference rollouts are those of origin TEACHER at the same task; without a scored one, no rollout has a reward.
    """

    inner: Reward
    scale: float = 1.0  # of the difference of scores
    free: int = 300  # tokens that cost nothing
    price: float = 0.01  # of each further token
    weight: float = 1.0

    is_relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.scale > 0 or self.price < 0:
            raise ConfigurationError(f"Preferred needs scale > 0 and price >= 0, got {self.scale} and {self.price}")

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    async def __call__(self, group: Group) -> list[float]:
        told = self.inner(group)
        raw = await told if inspect.isawaitable(told) else told
        scores = [self._priced(value, rollout) for value, rollout in zip(raw, group.rollouts, strict=True)]
        is_reference = [rollout.origin is Origin.TEACHER for rollout in group.rollouts]
        known = [score for score, is_one in zip(scores, is_reference, strict=True) if is_one and not math.isnan(score)]
        return [self._preferred(score, known) for score in scores]

    def _priced(self, value: float | Paid, rollout: Rollout) -> float:
        whole = value.end + sum(span.value for span in value.spans) if isinstance(value, Paid) else value
        return whole - self.price * max(rollout.num_tokens - self.free, 0)

    def _preferred(self, score: float, references: Sequence[float]) -> float:
        if not references:
            return math.nan
        return sum(_sigmoid(self.scale * (score - each)) for each in references) / len(references)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
