"""CANON: advantages across and within the high and low halves of a group, split by entropy or length.

Title: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models
Paper: arXiv 2509.23962 (2025)
Claim: By entropy it reasons better, by length it saves tokens, with no direction set in advance.
Reading: A group with a single scored rollout gets advantage 0; the release gives it the plain reward.
Acts: advantage_beside_rewards > 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.training.reductions.means import ConstantLength
from strop.training.requirements import ENTROPY, PolicyStatistic
from strop.types import Group, Rollout

# CANON's advantage (2509.23962). The rewards decide which half is better, unless `direction` differs from 1.

_METRICS = ("entropy", "length")


@dataclass
class Conditional(Advantage):
    """A = mix * (r - mean of the other half) + (1 - mix) * (r - mean of its own half), halves by rank of the metric.

    The low half is the first floor(G / 2) in a stable order. With an even group, mix 0.5 is the group-mean baseline.
    With `cycles` the mix warms up over a fifth of the `steps`, then falls to 0 along a cosine that many times.
    `direction` a weighs one half: r - a * low and a * r - high by entropy, a * r - short and r - a * long by length.
    """

    metric: str = "entropy"  # entropy or length
    mix: float = 1.0  # weight of the comparison with the other half
    direction: float = 1.0  # weight of one half; 1: neither half is favoured

    cycles: int = 0  # cosine restarts of the mix; 0: constant mix
    steps: int = 0  # length of the mix schedule, in training steps

    min_group: ClassVar[int] = 2
    _batches: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.metric not in _METRICS:
            raise ConfigurationError(f"Conditional has no metric {self.metric!r}: {nearest(self.metric, _METRICS)}")
        if self.cycles < 0 or (self.cycles and self.steps < 1):
            raise ConfigurationError(
                f"Conditional needs cycles >= 0 and, with cycles, steps >= 1, got {self.cycles} and {self.steps}"
            )

    @property
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset({ENTROPY} if self.metric == "entropy" else ())

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rollouts = sorted(group.scored, key=self._measure)  # stable: ties stay in order
            for rollout, advantage in zip(rollouts, self._advantages(rollouts), strict=True):
                rollout.set_advantage(float(advantage))
        self._batches += 1

    def mix_at(self, step: int) -> float:
        """Weight of the comparison with the other half at a step, counted from 0."""
        warmup = self.steps // 5
        if not self.cycles:
            return self.mix
        if step < warmup:
            return self.mix * step / warmup
        progress = self.cycles * (step - warmup) / max(self.steps - warmup, 1)
        return self.mix * 0.5 * (1 + math.cos(math.pi * (progress % 1.0)))

    def state(self) -> dict[str, Any]:
        return {"batches": self._batches}

    def restore(self, state: dict[str, Any]) -> None:
        self._batches = int(state["batches"])

    def _measure(self, rollout: Rollout) -> float:
        if self.metric == "length" or not rollout.num_tokens:
            return float(rollout.num_tokens if self.metric == "length" else 0.0)
        return float(ENTROPY.of(rollout).mean())

    def _advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Advantages of rollouts sorted by the metric: [G]."""
        rewards = np.array([rollout.reward for rollout in rollouts], dtype=np.float64)
        half = len(rewards) // 2
        if not half:
            return np.zeros(len(rewards))
        low, high = rewards[:half].mean(), rewards[half:].mean()
        of_low, of_high = (1.0, self.direction) if self.metric == "length" else (self.direction, 1.0)
        inter = np.concatenate([of_low * rewards[:half] - of_high * high, of_high * rewards[half:] - of_low * low])
        intra = np.concatenate([rewards[:half] - low, rewards[half:] - high])
        mix = self.mix_at(self._batches)
        return mix * inter + (1 - mix) * intra


def canon(
    setting: Setting = Setting(),
    metric: str = "entropy",  # entropy or length
    mix: float = 1.0,  # weight of the comparison with the other half; 0.5 is Dr. GRPO
    cycles: int = 0,  # cosine restarts of `mix`; the paper uses 3, with a peak of 0.6
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
) -> Run:
    """Clipped policy gradient with constant-length reduction; with `mix` 0.5 this is Dr. GRPO."""
    reduction = ConstantLength(setting.max_tokens)
    advantage = Conditional(metric, mix, cycles=cycles, steps=setting.steps)
    return setting.run("canon", advantage, (Clip(low, high),), reduction=reduction)
