"""A forecast and the mean of few rollouts make the baseline; more rollouts are made where the two disagree.

Key: v0.5
Title: V0.5: Generalist Value Model as a Prior for Sparse RL Rollouts
Paper: arXiv 2603.10848 (2026)
Claim: Over 10 % better than GRPO and DAPO on six benchmarks, with groups of 4.
Reading: Rewards from 0 to 1 and not -1 and 1, so noise and cost are a fourth. The forecast is that of v0's
    pass-rate estimator, which is told of recent outcomes; the paper's is a frozen model that was trained for that.
    Optimizer steps per batch are not known: one.
Left out: A value model that was trained on many policies beforehand.
Acts: prior_warning > 0 and rollouts_added > 0
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

# V0.5's test of a forecast (2603.10848): how far it lies from what k rollouts showed, beyond their own probability.
#
# Rewards from 0 to 1, so that the mean of k rollouts has a variance of at most 1 / 4k; the paper writes them as -1 and
# 1, where it is 1 / k.


@dataclass(frozen=True)
class Prior:
    """A forecast beside the mean of `count` rollouts; a forecast within their probability is taken for right."""

    forecast: float
    mean: float
    count: float  # at least 1

    @property
    def noise(self) -> float:
        return 1 / (4 * self.count)

    @property
    def error(self) -> float:
        """The forecast's squared error, as far as it is more than probability."""
        return max((self.mean - self.forecast) ** 2 - self.noise, 0.0)

    @property
    def warning(self) -> float:
        """How much of the baseline is the mean's; the rest is the forecast's."""
        return self.error / (self.error + self.noise)

    @property
    def baseline(self) -> float:
        return self.warning * self.mean + (1 - self.warning) * self.forecast

    def risk(self, more: int = 0) -> float:
        """The baseline's squared error with so many rollouts more: warning^2 * noise + (1 - warning)^2 * error."""
        return self.error / (1 + 4 * (self.count + more) * self.error)


# V0.5's rollouts on demand (2603.10848): more of them while that lowers the baseline's risk by what one costs.
#
# Reading: one more at a time, as in the paper, each judged by all that were made; a forecast that is not refuted ends
# it.


@dataclass(frozen=True)
class WhileRiskFalls(Budget):
    """`first` rollouts, then one after the other, up to `most`, while risk(k) - risk(k + 1) > cost."""

    first: int = 4  # rollouts before the forecast is judged
    most: int = 16  # rollouts in all
    cost: float = 1 / 1024  # of one rollout; that of the paper, 1 / 16^2, where rewards go from 0 to 1

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
        """Nothing; says how much was added."""
        added = [max(len(group.rollouts) - self.first, 0) for group in groups]
        return {"rollouts_added": sum(added) / max(len(groups), 1)}


# V0.5's advantage (2603.10848): against a baseline fused from a forecast and the mean of few rollouts.
#
# Readings: rewards go from 0 to 1 here and advantage with them, so it is half of the paper's. The rollouts that form
# the
# mean are those that are credited, as in the paper; the bias is of the order of 1 / sqrt(k).


@dataclass(frozen=True)
class FusedPrior(Advantage):
    """A = r - (w * mean + (1 - w) * forecast), w by how far the forecast is refuted; no forecast: the mean alone."""

    is_local: ClassVar[bool] = True

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
        """Nothing; says how often the forecast was refuted, and how much of the baseline is the rollouts'."""
        told = [(group.predicted[0], *successes(group)) for group in groups if group.predicted is not None]
        priors = [Prior(forecast, right / count, count) for forecast, right, count in told if count]
        size = max(len(priors), 1)
        warnings = [prior.warning for prior in priors]
        return {
            "prior_warning": sum(warnings) / size,
            "prior_refuted_share": sum(warning > 0 for warning in warnings) / size,
        }


def v0_5(
    setting: Setting = Setting(env="arithmetic:2+arithmetic:4+arithmetic:6", group_size=4),
    support: int = 64,  # tasks that the forecast is made from, those tried last
    most: int = 16,  # rollouts of one task; group_size of them are made before the forecast is judged
    cost: float = 1 / 1024,  # of one rollout, in units of the baseline's squared error
) -> Run:
    """group_size rollouts first; no group is too small, as the forecast is part of the baseline."""
    estimator, budget = Generalist(support, setting.device), WhileRiskFalls(setting.group_size, most, cost)
    return setting.run("v0_5", FusedPrior(), (Clip(),), estimator=estimator, budget=budget)
