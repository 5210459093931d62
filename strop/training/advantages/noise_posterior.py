"""NoisyGRPO's credit (2510.21122): what the noise level lets expect is the prior, the reward the observation.

Papers: noisygrpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.roles import Advantage
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class NoisePosterior(Advantage):
    """u = zs + K (zn - zs), A = z(u): zs standardised rewards, zn standardised cleanness 1 - n, K a Kalman gain.

    K = P / (P + observation), P = prior / (variance of the rewards + prior): the less the rewards differ, the more the
    noise level counts. A group without contrast trains, too, and prefers attempts made from cleaner prompts.
    """

    prior: float = 0.01  # of the noise level: the larger, the more it counts
    observation: float = 0.1  # the larger, the less it counts
    epsilon: float = 1e-4

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.prior <= 0 or self.observation <= 0:
            raise ConfigurationError(f"NoisePosterior needs prior and observation > 0, got {self}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = np.array([attempt.reward for attempt in group.scored], dtype=np.float64)
            noise = np.array([_noise(attempt) for attempt in group.scored], dtype=np.float64)
            observed, expected = self._standard(rewards), self._standard(1 - noise)
            posterior = observed + self.gain(rewards) * (expected - observed)
            for attempt, credit in zip(group.scored, self._standard(posterior), strict=True):
                attempt.credit(float(credit))

    def gain(self, rewards: NDArray[np.float64]) -> float:
        """K of a group."""
        variance = float((rewards - rewards[:1]).var(ddof=1)) if len(rewards) > 1 else 0.0
        uncertainty = self.prior / (variance + self.prior)
        return min(max(uncertainty / (uncertainty + self.observation), 0.0), 1.0)

    def _standard(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        values = values - values[:1]
        spread = values.std(ddof=1) if len(values) > 1 else 0.0
        if spread == 0.0:
            return np.zeros_like(values)
        return (values - values.mean()) / (spread + self.epsilon)  # type: ignore[no-any-return]


def _noise(attempt: Trajectory) -> float:
    if "noise" not in attempt.facts:
        raise ConfigurationError(
            f"NoisePosterior needs the noise level of attempt {attempt.id}: use the strategy NoiseLevels"
        )
    return attempt.facts["noise"]
