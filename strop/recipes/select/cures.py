"""CurES: GRPO with tasks and rollouts allotted by the standard deviation of the outcome, sqrt(p (1 - p)).

Title: CurES: From Gradient Analysis to Efficient Curriculum Learning for Reasoning LLMs
Paper: arXiv 2510.01037 (2025)
Claim: 3.3 points more than GRPO with a model of 1.5B and 4.8 with one of 7B, and faster.
Reading: Pass rates are Beta counts without decay, as released. The first visit of a task is its probe, where the paper
    has a pass of 4 rollouts over all of them. Gradients are taken as equally long. The release's temperature makes the
    choice uniform; 0.1 is our own. A price keeps the mean of 8 rollouts, where the paper divides each batch.
Left out: REINFORCE++ as the learner, the paper's alternative to GRPO. Gradient norms in the number of rollouts.
Acts: preference > 0 and rollouts_spread > 0 with tasks=16
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from strop.control.budgets.support.resource_price import Price
from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.control.samplers.support.bandit_metrics import preference
from strop.control.samplers.support.pending_choices import PendingChoices
from strop.control.samplers.support.task_pool import OfEndless, Pool, covering
from strop.control.seeded_choice import Doubles, drawn, softmax
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Budget, Environment, PassRateEstimator, Sampler
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Task

# CurES's budget (2510.01037): rollouts in proportion to the standard deviation of a task's outcome.
#
# For a fixed total this minimizes the variance of the gradient. Readings: gradients of all rollouts are taken as
# equally long, which leaves sqrt(p (1 - p)) of the paper's deviation; p is the prediction of the run's pass-rate
# estimator, so an unknown task gets the most rollouts, and its first visit is its probe. A price keeps the total, not a
# division within each batch, so no task waits for the rest of its batch.

_UNKNOWN = (0.5, 1 / 12)  # mean and variance of a uniform pass rate


@dataclass
class ByDeviation(Budget):
    """Budget of mean * 2 sqrt(p (1 - p)) / price rollouts, from `least` to `most`; the price keeps their mean at
    `mean`.
    """

    mean: float = 8.0  # rollouts of a group, on average
    least: int = 2  # a single rollout has no sibling to compare with
    most: int = 32
    _price: Price = field(init=False, repr=False, compare=False)

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.least < self.mean < self.most:
            raise ConfigurationError(
                f"ByDeviation needs 1 <= least < mean < most, got {self.least}, {self.mean} and {self.most}"
            )
        self._price = Price(self.mean)

    def rollouts(self, group: Group) -> int:
        if group.rollouts:
            return 0
        probability = (group.predicted or _UNKNOWN)[0]
        wanted = self.mean * 2 * math.sqrt(probability * (1 - probability)) / self._price.value
        return min(max(math.floor(wanted + 0.5), self.least), self.most)

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.rollouts))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: the current price, and the largest minus the smallest group."""
        sizes = [len(group.rollouts) for group in groups]
        return {"price": self._price.value, "rollouts_spread": float(max(sizes, default=0) - min(sizes, default=0))}

    def state(self) -> dict[str, Any]:
        return {"price": self._price.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state["price"])


# CurES's choice of tasks (2510.01037): the more uncertain a task's outcome, the more often it is sampled.
#
# Reading: pass rates are those that the run's estimator predicts; with `TaskCounts` without decay they are the paper's.
# The release divides by a temperature so high that the probabilities of tasks differ by less than half a percent; here
# it is a parameter that has an effect.


@dataclass
class VarianceWeighted(Sampler):
    """Sampler with P(task) proportional to exp(sqrt(p (1 - p)) / temperature); a pool is reordered for every version.

    The order is sampled without replacement, so no task comes twice under the same weights.
    """

    envs: tuple[Environment, ...]
    tasks: int = 256  # of each environment, to choose from
    temperature: float = 0.1  # the lower, the more the most uncertain tasks are preferred
    seed: int = 0
    _pool: Pool = field(init=False, repr=False, compare=False)
    _pending: PendingChoices = field(default_factory=PendingChoices, init=False, repr=False, compare=False)
    _preference: float = field(default=0.0, init=False, repr=False, compare=False)  # at the last choice

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigurationError(f"VarianceWeighted needs temperature > 0, got {self.temperature}")
        self._pool = Pool(self.envs, self.tasks)

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        return self._pool.task(self._pending.next(step, lambda number: self._ordered(step, estimator, number)))

    def probabilities(self, step: int, estimator: PassRateEstimator) -> Doubles:
        """Probability of each task to come first: [N]."""
        means = estimator.predict(self._pool.tasks(range(len(self._pool))), step)[0].astype(np.float64)
        return softmax(np.sqrt(means * (1 - means)), self.temperature)

    def _ordered(self, step: int, estimator: PassRateEstimator, number: int) -> list[int]:
        probabilities = self.probabilities(step, estimator)
        self._preference = preference(probabilities)
        return drawn(probabilities, len(probabilities), (self.seed, number))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics only: distance of the last choice from a uniform one."""
        return {"preference": self._preference}

    def state(self) -> dict[str, Any]:
        return {"pending": self._pending.state(), "preference": self._preference}

    def restore(self, state: dict[str, Any]) -> None:
        self._pending.restore(state["pending"])
        self._preference = float(state["preference"])


def cures(
    setting: Setting = Setting(env="countdown:4"),
    tasks: int = OfEndless(256),  # of each environment, to choose from; all of a table
    softness: float = 0.1,  # temperature of the choice: the lower, the more the most uncertain tasks are preferred
    least: int = 2,  # rollouts of one task
    most: int = 32,  # rollouts of one task; `group_size` is their mean
) -> Run:
    """GRPO with tasks and rollouts where outcomes are least certain."""
    run = setting.run(
        "cures",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.001)),
        estimator=TaskCounts(per_version=1.0, per_visit=1.0),
        budget=ByDeviation(setting.group_size, least, most),
        reduction=SequenceMean(),
    )
    run.sampler = VarianceWeighted(run.envs, covering(run.envs, tasks), softness, setting.seed)
    return run
