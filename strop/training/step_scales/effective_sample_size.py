"""Learning rate scaled by the effective sample size (VCPO, 2602.17616): smaller steps on staler data.

Papers: vcpo
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import StepScale


@dataclass(frozen=True)
class EffectiveSampleSize(StepScale):
    """min(1, share / full)^power, share = (sum w)^2 / (N sum w^2) of the rollouts' untruncated weights w.

    The square root suits optimizers that normalise the gradient (Adam); 1 is the linear rule. `full` is the share at
    which a step is not reduced: 1, or 0.55 for tool use.
    """

    full: float = 1.0  # share of effective samples at which a step is not reduced
    power: float = 0.5  # 0.5 for Adam, 1: linear

    def __post_init__(self) -> None:
        if not 0 < self.full <= 1:
            raise ConfigurationError(f"EffectiveSampleSize needs 0 < full <= 1, got {self.full}")

    def __call__(self, log_weights: Tensor) -> float:
        # in log space: a weight is a product over tokens, and its square may not be finite
        exact = log_weights.double()
        twice = 2 * exact.logsumexp(0) - (2 * exact).logsumexp(0)
        share = math.exp(min(float(twice), math.log(len(log_weights)))) / len(log_weights)
        return float(min(1.0, share / self.full) ** self.power)
