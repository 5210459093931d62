"""V0.5: a baseline fused from a predicted pass rate and the mean of few rollouts; more rollouts where they disagree.

Key: v0.5
Title: V0.5: Generalist Value Model as a Prior for Sparse RL Rollouts
Paper: arXiv 2603.10848 (2026)
Claim: Over 10 % better than GRPO and DAPO on six benchmarks, with groups of 4.
Reading: Rewards from 0 to 1 instead of -1 and 1, so noise and cost are a fourth. The prediction is that of v0's
    pass-rate estimator, which reads recent outcomes; the paper's is a frozen model trained for that. The number of
    optimizer steps per batch was not found: one.
Left out: A value model trained on many policies beforehand.
Acts: prior_mean_weight > 0 and rollouts_added > 0
Break: cost=1e9: no prediction is worth another rollout
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.control.estimators.generalist import Generalist
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage, Budget
from strop.run import Run
from strop.success import successes
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics

# V0.5's test of a prediction (2603.10848): its deviation from the mean of k rollouts beyond sampling noise.
#
# Rewards from 0 to 1, so that the mean of k rollouts has a variance of at most 1 / 4k; the paper writes them as -1 and
# 1, where it is 1 / k.


@dataclass(frozen=True)
class Prior:
    """A predicted pass rate and the mean of `count` rollouts; a prediction within sampling noise is accepted."""

    forecast: float  # predicted pass rate
    mean: float
    count: float  # at least 1

    @property
    def noise(self) -> float:
        """Largest variance of the mean."""
        return 1 / (4 * self.count)

    @property
    def error(self) -> float:
        """The prediction's squared error beyond sampling noise."""
        return max((self.mean - self.forecast) ** 2 - self.noise, 0.0)

    @property
    def mean_weight(self) -> float:
        """Weight of the mean in the baseline; the prediction has the rest."""
        return self.error / (self.error + self.noise)

    @property
    def baseline(self) -> float:
        return self.mean_weight * self.mean + (1 - self.mean_weight) * self.forecast

    def risk(self, more: int = 0) -> float:
        """The baseline's squared error with `more` further rollouts: w^2 * noise + (1 - w)^2 * error, w of the mean."""
        return self.error / (1 + 4 * (self.count + more) * self.error)


# V0.5's rollouts on demand (2603.10848): one more as long as it lowers the baseline's risk by more than its cost.
#
# Reading: one rollout at a time, as in the paper, each judged by all rollouts so far; sampling stops once the
# prediction is accepted.


@dataclass(frozen=True)
class WhileRiskFalls(Budget):
    """`first` rollouts, then one after the other, up to `most`, while risk(k) - risk(k + 1) > cost."""

    first: int = 4  # rollouts before the prediction is tested
    most: int = 16  # rollouts in all
    cost: float = 1 / 1024  # of one rollout; the paper's 1 / 16^2, rescaled to rewards from 0 to 1

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 2 <= self.first <= self.most or self.cost <= 0:
            raise ConfigurationError(
                f"WhileRiskFalls needs 2 <= first <= most and cost > 0, got {self.first}, {self.most} and {self.cost}"
            )

    @property
    def size(self) -> int | None:
        return self.first

    def rollouts(self, group: Group) -> int:
        made = len(group.rollouts)
        if not made:
            return self.first
        right, count = successes(group)
        if not count or group.predicted is None or made >= self.most:
            return 0
        prior = Prior(group.predicted[0], right / count, count)
        return int(prior.risk() - prior.risk(1) > self.cost)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports the mean number of added rollouts."""
        added = [max(len(group.rollouts) - self.first, 0) for group in groups]
        return {"rollouts_added": sum(added) / max(len(groups), 1)}


# V0.5's advantage (2603.10848): reward minus a baseline fused from a prediction and the mean of few rollouts.
#
# Readings: rewards go from 0 to 1, so advantages are half of the paper's. A rollout counts in the mean of its own
# baseline, as in the paper; the bias is of the order of 1 / sqrt(k).


@dataclass(frozen=True)
class FusedPrior(Advantage):
    """A = r - (w * mean + (1 - w) * prediction), w by the prediction's error; the mean alone without a prediction."""

    is_local: ClassVar[bool] = True
    needs_success: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            baseline = self.baseline(group)
            for rollout in group.scored:
                rollout.set_advantage(rollout.reward - baseline)

    def baseline(self, group: Group) -> float:
        right, count = successes(group)
        if group.predicted is None:
            return right / count if count else 0.0
        return Prior(group.predicted[0], right / count, count).baseline if count else group.predicted[0]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports the weight of the mean, and the share of rejected predictions."""
        known = [(group.predicted[0], *successes(group)) for group in groups if group.predicted is not None]
        priors = [Prior(forecast, right / count, count) for forecast, right, count in known if count]
        size = max(len(priors), 1)
        weights = [prior.mean_weight for prior in priors]
        return {
            "prior_mean_weight": sum(weights) / size,
            "prior_refuted_share": sum(weight > 0 for weight in weights) / size,
        }


def v0_5(
    setting: Setting = Setting(env="arithmetic:2+arithmetic:4+arithmetic:6", group_size=4),
    support: int = 64,  # latest tasks from which the pass rate is predicted
    most: int = 16,  # rollouts of one task; group_size of them come before the prediction is tested
    cost: float = 1 / 1024,  # of one rollout, in units of the baseline's squared error
) -> Run:
    """group_size rollouts first; no group is too small, as the prediction is part of the baseline."""
    estimator, budget = Generalist(support, setting.device), WhileRiskFalls(setting.group_size, most, cost)
    return setting.run("v0_5", FusedPrior(), (Clip(),), estimator=estimator, budget=budget)
