"""V0: GRPO with pass rates predicted in context from other tasks' outcomes, and a rollout budget allocated by them.

Title: V0: A Generalist Value Model for Any Policy at State Zero
Paper: arXiv 2602.03584 (2026)
Claim: One model predicts the success of any policy at a prompt, from a context of pairs and without any update.
Reading: Features are the initial model's hidden states and the head is a closed-form Gaussian process (see
    `Generalist`). The paper has 256 pairs in its context, all of the current policy; this recipe 64, from 8 steps. The
    allocation's solver is not published: every task takes its best number of rollouts at a common price per rollout.
    GRPO as in its own recipe, with `group_size` rollouts per task on average.
Left out: Pretraining of features and head over many policies, with its ranking loss of weight 1/4. Routing between
    models by their values.
Acts: estimator_spread > 0 and rollouts_spread > 0
Break: support=0: the estimator has seen nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.control.budgets.support.resource_price import Price
from strop.control.estimators.generalist import Generalist
from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Budget
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics

# V0's rollout allocation (2602.03584): maximize the expected number of wrong rollouts that have a right sibling.
#
# With B rollouts of a task with pass rate p that number is U = B (1 - p) (1 - (1 - p)^(B - 1)). U is convex in B while
# p is small, so greedy allocation fails: at p = 0.1 the second rollout gains 0.18 and the fifth 0.57. Reading: the
# paper's solver was not found. Every task takes the B from `least` to `most` with the largest U - price * B, which no
# other allocation of the same number of rollouts beats. The price adapts so that the mean is `mean`
# (`control/budgets/support/resource_price.py`), without waiting for a batch.

_RATE = 0.05  # learning rate of the price


@dataclass
class ByUtility(Budget):
    """Rollouts per task by expected utility at the predicted pass rate, `mean` on average."""

    mean: float = 8.0  # rollouts per task on average
    least: int = 2  # fewest rollouts of a task
    most: int = 16  # most rollouts of a task

    _price: Price = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.least < self.mean < self.most:
            raise ConfigurationError(
                f"ByUtility needs 1 <= least < mean < most, got {self.least}, {self.mean} and {self.most}"
            )
        self._price = Price(self.mean, _RATE, 0.5)

    def rollouts(self, group: Group) -> int:
        if group.rollouts:
            return 0
        probability = 0.5 if group.predicted is None else group.predicted[0]
        counts = np.arange(self.least, self.most + 1)
        return int(counts[np.argmax(utility(counts, probability) - self._price.value * counts)])

    def observe(self, group: Group) -> None:
        self._price.pay(len(group.rollouts))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports the spread of group sizes and the price of a rollout."""
        sizes = [len(group.rollouts) for group in groups]
        return {"rollouts_spread": float(np.std(sizes)) if sizes else 0.0, "rollout_price": self._price.value}

    def state(self) -> dict[str, Any]:
        return self._price.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state)


def utility(counts: NDArray[np.int64], probability: float) -> NDArray[np.float64]:
    """Expected number of wrong rollouts with a right sibling, per group size, at this pass rate: [N]."""
    wrong = 1 - probability
    return np.asarray(counts * wrong * (1 - wrong ** (counts - 1.0)), np.float64)


def v0(
    setting: Setting = Setting(env="arithmetic:1+arithmetic:4+countdown:4"),
    support: int = 64,  # latest tasks in the estimator's context
    least: int = 2,  # fewest rollouts of a task
    most: int = 0,  # most rollouts of a task; 0: twice group_size
) -> Run:
    """GRPO with `group_size` rollouts per task on average."""
    return setting.run(
        "v0",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        estimator=Generalist(support, setting.device),
        budget=ByUtility(setting.group_size, least, most or 2 * setting.group_size),
        reduction=SequenceMean(),
    )
