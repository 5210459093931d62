"""V0.5's credit (2603.10848): against a baseline fused from a forecast and the mean of few attempts.

Readings: rewards go from 0 to 1 here and credit with them, so it is half of the paper's. The attempts that form the
mean are those that are credited, as in the paper; the bias is of the order of 1 / sqrt(k).
Papers: v0.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.control.prior import Prior
from strop.roles import Advantage
from strop.success import successes
from strop.types import Group, Metrics


@dataclass(frozen=True)
class FusedPrior(Advantage):
    """A = r - (w * mean + (1 - w) * forecast), w by how far the forecast is refuted; no forecast: the mean alone."""

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            baseline = self.baseline(group)
            for attempt in group.scored:
                attempt.credit(attempt.reward - baseline)

    def baseline(self, group: Group) -> float:
        right, count = successes(group)
        if group.foreseen is None:
            return right / count if count else 0.0
        return Prior(group.foreseen[0], right / count, count).baseline if count else group.foreseen[0]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how often the forecast was refuted, and how much of the baseline is the attempts'."""
        told = [(group.foreseen[0], *successes(group)) for group in groups if group.foreseen is not None]
        priors = [Prior(forecast, right / count, count) for forecast, right, count in told if count]
        size = max(len(priors), 1)
        doubts = [prior.doubt for prior in priors]
        return {"prior_doubt": sum(doubts) / size, "prior_refuted_share": sum(doubt > 0 for doubt in doubts) / size}
