"""Longer steps on larger draws (BroRL, 2510.01180): the learning rate grows as the square root of the attempts.

Papers: brorl
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import StepScale


@dataclass(frozen=True)
class RootOfAttempts(StepScale):
    """(N / usual)^0.5 for a step on N attempts."""

    usual: int  # attempts of a step at which the learning rate is what it says

    def __post_init__(self) -> None:
        if self.usual < 1:
            raise ConfigurationError(f"RootOfAttempts needs usual >= 1, got {self.usual}")

    def __call__(self, log_weights: Tensor) -> float:
        return math.sqrt(len(log_weights) / self.usual)
