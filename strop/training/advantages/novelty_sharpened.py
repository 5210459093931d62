"""XRPO's exploitation (2510.06672): right attempts that the policy found unlikely among their siblings count more.

Papers: xrpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Metrics, Trajectory


@dataclass(frozen=True)
class NoveltySharpened(Advantage):
    """A + min(max(novelty * (1 - e), 0), most * A) where A > 0; e = exp(s - mean of s), s the mean log-probability.

    s is of the weights that sampled, over an attempt's own tokens, and its mean over the siblings that count.
    """

    inner: Advantage
    novelty: float = 2.5  # weight of being unlikely
    most: float = 0.5  # of the advantage, that is added

    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.novelty < 0 or self.most < 0:
            raise ConfigurationError(
                f"NoveltySharpened needs novelty >= 0 and most >= 0, got {self.novelty} and {self.most}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            spoken = [attempt for attempt in group.scored if attempt.num_sampled and attempt.advantages is not None]
            for attempt, bonus in zip(spoken, self._bonuses(spoken), strict=True):
                assert attempt.advantages is not None
                credit = attempt.advantages.astype(np.float64)
                attempt.advantages = (credit + np.clip(bonus, 0, self.most * np.maximum(credit, 0))).astype(np.float32)

    def _bonuses(self, attempts: Sequence[Trajectory]) -> list[float]:
        likely = [_mean_logprob(attempt) for attempt in attempts]
        middle = float(np.mean(likely)) if likely else 0.0
        return [self.novelty * (1 - float(np.exp(each - middle))) for each in likely]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The share of attempts with a bonus that their credit could take."""
        found = []
        for group in groups:
            spoken = [attempt for attempt in group.scored if attempt.num_sampled and attempt.advantages is not None]
            credited = [float(np.max(t.advantages, initial=0.0)) > 0 for t in spoken if t.advantages is not None]
            found += [is_right and bonus > 0 for is_right, bonus in zip(credited, self._bonuses(spoken), strict=True)]
        return {"sharpened_share": sum(found) / max(len(found), 1)}


def _mean_logprob(attempt: Trajectory) -> float:
    """Of what some weights sampled."""
    logprobs = [turn.logprobs[turn.versions >= 0] for turn in attempt.turns]
    return float(np.concatenate(logprobs).astype(np.float64).mean())
