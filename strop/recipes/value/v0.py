"""What a policy did at other tasks foretells a new one, and rollouts go where they will teach most.

Title: V0: A Generalist Value Model for Any Policy at State Zero
Paper: arXiv 2602.03584 (2026)
Claim: One model foretells the success of any policy at a prompt, from a context of pairs and without any update.
Reading: Features are the first model's own states and the head is the closed form of a Gaussian process, see the
    mechanism. The paper has 256 pairs in its context, all of the current policy; 64 here, which are 8 steps. The
    allotment's solver is not published; at a price, every task takes its best number of rollouts. GRPO as in its own
    recipe, around `group_size` rollouts a task.
Left out: Pretraining of features and head over many policies, with its ranking loss of weight 1/4. Routing between
    models by their values.
Acts: estimator_spread > 0 and rollouts_spread > 0
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

# V0's allotment (2602.03584): rollouts go where most wrong ones will have a right sibling to learn from.
#
# With B rollouts of a task that is solved with probability p, U = B (1 - p) (1 - (1 - p)^(B - 1)) of them are expected
# to be
# wrong beside a right one. U is convex in B while p is small, so that giving the next rollout where it gains most is
# wrong: at p = 0.1 the second one gains 0.18 and the fifth 0.57. Reading: the paper's solver was not found. Here every
# task takes the B from `least` to `most` that has the largest U - price * B, tried one by one, which no other allotment
# of the same rollouts beats; the price moves so that the mean is kept (`control/budgets/support/resource_price.py`),
# and nobody waits for a batch.

_RATE = 0.05  # of the price


@dataclass
class ByUtility(Budget):
    """Rollouts by what the pass-rate estimator foresaw, `mean` of them on average."""

    mean: float = 8.0  # rollouts of a task, on average
    least: int = 2  # rollouts of any task
    most: int = 16  # rollouts of any task

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
        """Nothing; says how unequally rollouts were allotted, and at which price."""
        sizes = [len(group.rollouts) for group in groups]
        return {"rollouts_spread": float(np.std(sizes)) if sizes else 0.0, "rollout_price": self._price.value}

    def state(self) -> dict[str, Any]:
        return self._price.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._price.restore(state)


def utility(counts: NDArray[np.int64], probability: float) -> NDArray[np.float64]:
    """Expected wrong rollouts that have a right sibling, of so many at a task of this probability: [N]."""
    wrong = 1 - probability
    return np.asarray(counts * wrong * (1 - wrong ** (counts - 1.0)), np.float64)


def v0(
    setting: Setting = Setting(env="arithmetic:1+arithmetic:4+countdown:4"),
    support: int = 64,  # tasks in the context, those tried last
    least: int = 2,  # rollouts of any task
    most: int = 0,  # rollouts of any task; 0: twice group_size
) -> Run:
    """`group_size` rollouts on average."""
    return setting.run(
        "v0",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", 0.04)),
        estimator=Generalist(support, setting.device),
        budget=ByUtility(setting.group_size, least, most or 2 * setting.group_size),
        reduction=SequenceMean(),
    )
