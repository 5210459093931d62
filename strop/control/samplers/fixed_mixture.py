"""Fixed mixture of environments, each task once (MoDoMoDo, 2505.24871); also the control of adaptive samplers.

Reading: an environment that is used up begins again in a new order; the paper's run ends there.
Papers: modomodo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.control.samplers.support.bandit_arms import BanditArms
from strop.control.samplers.support.bandit_metrics import shares
from strop.control.seeded_choice import drawn
from strop.errors import ConfigurationError
from strop.roles import Environment, PassRateEstimator, Sampler
from strop.types import Group, Metrics, Task


@dataclass
class Mixture(Sampler):
    """Environments sampled in proportion to their weights, tasks in order; observations change nothing."""

    envs: tuple[Environment, ...]
    weights: tuple[float, ...]  # of the environments, in their order; only proportions count
    seed: int = 0  # of the choice
    _arms: BanditArms = field(init=False, repr=False, compare=False)
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._arms = BanditArms(self.envs)
        if len(self.weights) != len(self.envs) or min(self.weights) < 0 or not 0 < sum(self.weights) < float("inf"):
            raise ConfigurationError(
                f"Mixture needs a weight >= 0 of each of {len(self.envs)} environments, and one above 0; got "
                f"{self.weights}"
            )

    def next(self, step: int, estimator: PassRateEstimator) -> Task:
        (arm,) = drawn(self.weights, 1, (self.seed, self._num_drawn))
        self._num_drawn += 1
        return self._arms.take(arm)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says what the batch was mixed of."""
        return shares(self.envs, groups)

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn, "arms": self._arms.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn = int(state["num_drawn"])
        self._arms.restore(state["arms"])
