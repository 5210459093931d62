"""GDRO: tasks in bins by predicted pass rate; larger advantages for hard bins, more rollouts for uneven ones.

Title: Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning
Paper: arXiv 2601.19280 (2026)
Claim: 10.6 % and 10.1 % more pass@8 than GRPO at 1.7B to 8B, for weights and for rollouts.
Reading: Both halves together; the paper evaluates each alone. Bins come from the pass-rate estimator's prediction and
    not from a window per task, so no margin between bins is needed. The loss of a bin is its share of wrong rollouts,
    and its number of rollouts follows the square-root law that the paper derives, at the price that its controller
    updates.
Left out: Bandits over numbers of rollouts, and the exact division of each batch by dynamic programming.
Acts: bin_weighting > 0 and rollouts_spread > 0 and price != 1 with tasks=2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.control.budgets.support.resource_price import Price
from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.control.samplers.few import Few
from strop.control.samplers.support.pending_choices import Filed
from strop.control.samplers.support.task_pool import OfEndless, covering
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage, Budget
from strop.run import Run
from strop.success import success
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics

# Bins by the probability that one of several rollouts is right, predicted before the first.

_ROUNDING = 1e-9  # 1 - (1 - 0.1) is less than 0.1


def pass_bin(group: Group, bins: int, tries: int) -> int:
    """Which of `bins` equal parts of 0 to 1 contains the probability that one of `tries` rollouts is right.

    The probability of a single rollout is the prediction of the run's pass-rate estimator; 1/2 where there is none.
    """
    probability = 0.5 if group.predicted is None else group.predicted[0]
    return min(int(bins * (1 - (1 - probability) ** tries) + _ROUNDING), bins - 1)


# GDRO's budget (2601.19280): bins of tasks with more varied outcomes get more rollouts, at a fixed mean.
#
# In the paper a bandit per bin chooses the number of rollouts by its gain minus its price. Reading: the gain of n
# rollouts is known: it is the variance v / n of the mean of a bin's rewards. So the best n is computed: n = sqrt(v) /
# price, the paper's square-root law. v is the bin's running variance of outcomes within a group; its rate is that of
# the paper's arms, and the step of the price is the paper's 0.05 for a group of twice the mean.

_LARGEST = 0.25  # variance of an outcome that is 0 or 1 at p = 1/2; the initial value of a bin


@dataclass
class ShadowPrice(Budget):
    """Budget of mean * sqrt(v / 0.25) / price rollouts in a bin of variance v, from `least` to `most`."""

    mean: float = 4.0  # rollouts of a group, on average
    least: int = 2
    most: int = 12
    bins: int = 10  # of the probability that one of `tries` rollouts is right
    tries: int = 8  # rollouts, one of which has to be right
    rate: float = 0.4  # of the running variance per version
    _price: Price = field(init=False, repr=False, compare=False)
    _variances: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _filed: Filed = field(default_factory=Filed, init=False, repr=False, compare=False)
    _version: int = field(default=0, init=False, repr=False, compare=False)  # version up to which groups were applied

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 2 <= self.least < self.mean < self.most:
            raise ConfigurationError(
                f"ShadowPrice needs 2 <= least < mean < most, got {self.least}, {self.mean} and {self.most}"
            )
        if self.bins < 1 or self.tries < 1 or not 0 < self.rate <= 1:
            raise ConfigurationError(f"ShadowPrice needs bins >= 1, tries >= 1 and 0 < rate <= 1, got {self}")
        self._price = Price(self.mean)
        self._variances = [_LARGEST] * self.bins

    def rollouts(self, group: Group) -> int:
        if group.rollouts:
            return 0
        if group.version > self._version:  # apply the groups of earlier weights together
            self._version = group.version
            self._update()
        variance = self._variances[pass_bin(group, self.bins, self.tries)]
        wanted = self.mean * math.sqrt(variance / _LARGEST) / self._price.value
        return min(max(math.floor(wanted + 0.5), self.least), self.most)

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.rollouts))
        outcomes = np.array([success(rollout) for rollout in group.own])
        if len(outcomes) > 1:
            place = pass_bin(group, self.bins, self.tries)
            self._filed.add(group, place, float(outcomes.var(ddof=1)), len(outcomes) - 1)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the current price, and the largest minus the smallest group."""
        sizes = [len(group.rollouts) for group in groups]
        return {"price": self._price.value, "rollouts_spread": float(max(sizes, default=0) - min(sizes, default=0))}

    def _update(self) -> None:
        rows = self._filed.take()
        for place, before in enumerate(self._variances):
            seen = [(variance * weight, weight) for _, _, of, variance, weight in rows if of == place]
            if seen:
                found = sum(total for total, _ in seen) / sum(weight for _, weight in seen)
                self._variances[place] = before + self.rate * (found - before)

    def state(self) -> dict[str, Any]:
        return {
            "price": self._price.state(),
            "variances": list(self._variances),
            "filed": self._filed.state(),
            "version": self._version,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state["price"])
        self._variances = [float(each) for each in state["variances"]]
        self._filed.restore(state["filed"])
        self._version = int(state["version"])


# GDRO's weights (2601.19280): advantages in bins of high loss are scaled up, by multiplicative weights.
#
# No task is sampled more often; advantages are scaled. Readings: the loss of a bin is its share of wrong rollouts. The
# paper's own, a clipped surrogate, is 0 for every task as long as the policy is the one that sampled. Weights are
# relative to their mean over the bins, which differs from the paper's by a factor common to all; bins come from the
# pass-rate estimator's prediction, so no task needs a window of its own.


@dataclass
class BinWeighted(Advantage):
    """Advantage of `inner` times min(B q, most); q = (1 - mixed) * w / sum w + mixed / B, w = exp(strength * S).

    S of a bin moves by `rate` towards its mean loss in each batch, after the advantages are computed.
    """

    inner: Advantage
    strength: float = 0.65  # exponent of a bin's loss in its weight
    mixed: float = 0.01  # share of a uniform weighting
    rate: float = 0.12  # of a bin's running loss per batch
    most: float = 15.0  # largest weight
    bins: int = 10  # of the probability that one of `tries` rollouts is right
    tries: int = 8  # rollouts, one of which has to be right
    _losses: list[float] = field(default_factory=list, init=False, repr=False, compare=False)  # S of each bin
    _used: float = field(default=0.0, init=False, repr=False, compare=False)  # mean |weight - 1| of the last batch

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.mixed <= 1 or not 0 < self.rate <= 1 or self.bins < 1 or self.tries < 1 or self.most <= 0:
            raise ConfigurationError(
                f"BinWeighted needs mixed from 0 to 1, 0 < rate <= 1, bins and tries >= 1 and most > 0, got {self}"
            )
        self._losses = [0.0] * self.bins

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        weights, places = self.weights(), [pass_bin(group, self.bins, self.tries) for group in groups]
        for group, place in zip(groups, places, strict=True):
            for rollout in group.rollouts:
                if rollout.advantages is not None:
                    rollout.advantages = (rollout.advantages * weights[place]).astype(np.float32)
        self._used = float(np.mean([abs(weights[place] - 1) for place in places])) if places else 0.0
        self._update(groups, places)

    def weights(self) -> NDArray[np.float64]:
        """Factor of each bin's advantages: [B]."""
        powers = np.exp(self.strength * np.array(self._losses))
        return np.asarray(np.minimum((1 - self.mixed) * powers / powers.mean() + self.mixed, self.most))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics: mean distance of the weights from 1 in the last batch, and their current range."""
        return {"bin_weighting": self._used, "bin_spread": float(np.ptp(self.weights()))}

    def _update(self, groups: Sequence[Group], places: Sequence[int]) -> None:
        for place, before in enumerate(self._losses):
            found = [
                1 - success(rollout)
                for group, of in zip(groups, places, strict=True)
                for rollout in group.own
                if of == place
            ]
            if found:
                self._losses[place] = before + self.rate * (float(np.mean(found)) - before)

    def state(self) -> dict[str, Any]:
        return {"losses": list(self._losses)}

    def restore(self, state: dict[str, Any]) -> None:
        self._losses = [float(loss) for loss in state["losses"]]


def gdro(
    setting: Setting = Setting(env="arithmetic:1+countdown:4+compose:3", groups_per_step=16, group_size=4),
    tasks: int = OfEndless(64),  # of each environment; they repeat, since nothing is known of a task on its first visit
    strength: float = 0.65,  # exponent of a bin's loss in its weight
    mixed: float = 0.01,  # share of a uniform weighting
    rate: float = 0.12,  # of a bin's running loss per batch
    largest: float = 15.0,  # weight of a bin
    least: int = 2,  # rollouts of one task
    most: int = 12,  # rollouts of one task; `group_size` is their mean
    bins: int = 10,  # of the probability that one of `tries` rollouts is right
    tries: int = 8,  # rollouts, one of which has to be right, in the probability that defines the bins
    variance_rate: float = 0.4,  # of a bin's running variance per version
) -> Run:
    """GRPO with advantages and rollouts allotted by bin."""
    run = setting.run(
        "gdro",
        BinWeighted(GroupStandard(), strength, mixed, rate, largest, bins, tries),
        (Clip(0.2, 0.2), Kl("k3", 0.001)),
        estimator=TaskCounts(),
        budget=ShadowPrice(setting.group_size, least, most, bins, tries, variance_rate),
        reduction=SequenceMean(),
    )
    run.sampler = Few(run.envs, covering(run.envs, tasks))
    return run
