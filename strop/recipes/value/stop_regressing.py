"""PPO with a classification critic (HL-Gauss): values as distributions over bins, trained by cross-entropy.

Title: Stop Regressing: Training Value Functions via Classification for Scalable Deep RL
Paper: arXiv 2403.03950 (2024)
Claim: Values learned by cross-entropy scale better than by regression, from Atari to a language agent.
Reading: The target is HL-Gauss with the paper's width of 0.75 bins; the range has a margin around rewards from 0 to 1.
Acts: value_cross_entropy > 0 and advantage_within > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.arithmetic.calibration import calibration
from strop.training.losses.clip import Clip
from strop.training.machine.value_body import BEFORE, Part, ValueBody
from strop.training.machine.value_model import Bodied
from strop.types import Group, Metrics

# A classification critic (2403.03950): values as a distribution over bins, trained by cross-entropy.
#
# The target is a Gaussian around the return, integrated over the bins (HL-Gauss). Bootstrapping uses the expectation.


@dataclass
class BinnedCritic(Bodied):
    """Critic V = sum_k softmax(logits)_k * centre_k with loss -sum_k q_k log softmax(logits)_k, q the target's bins.

    `smoothing` is the Gaussian's width in bins: the paper's 0.75 spreads it over about six bins. Near the ends of the
    range the truncated Gaussian biases the mean, so leave a margin of two bins.
    """

    low: float = -0.2  # lower end of the range
    high: float = 1.2  # upper end of the range
    bins: int = 51  # number of bins
    smoothing: float = 0.75  # the Gaussian's width in bins

    _name: ClassVar[str] = "binned_critic"

    def __post_init__(self) -> None:
        if not self.low < self.high or self.bins < 2 or not self.smoothing > 0:
            raise ConfigurationError(f"BinnedCritic needs low < high, bins >= 2 and smoothing > 0, got {self}")

    @property
    def edges(self) -> Tensor:
        """Bounds of the bins: [K + 1]."""
        return torch.linspace(self.low, self.high, self.bins + 1, device=self.device)

    @property
    def centres(self) -> Tensor:
        """Centres of the bins: [K]."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def open(self, model: Path, seed: int) -> None:
        self._body = ValueBody.open(model, self.bins, self.max_tokens, self.device)

    def predict(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        found = self._ready().told(rollouts)
        for rollout in rollouts:
            logits = torch.from_numpy(found.get(rollout.id, np.zeros((0, 2, self.bins), np.float32))[:, BEFORE])
            rollout.values = self.decoded(logits.to(self.device)).cpu().numpy()

    def learn(self, groups: Sequence[Group]) -> Metrics:
        body = self._ready()
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        parts = body.parts(rollouts)
        count = max(sum(len(part.rows) for part in parts), 1)
        values = np.concatenate([*(_array(rollout.values) for rollout in rollouts), np.zeros(0)])
        returns = np.concatenate([*(_array(rollout.returns) for rollout in rollouts), np.zeros(0)])
        entropies: list[float] = []

        def loss(outputs: Tensor, part: Part) -> Tensor:
            target = self.target(part.column([_array(rollout.returns) for rollout in part.rollouts]))
            total = -(target * outputs[:, BEFORE].log_softmax(-1)).sum() / count
            entropies.append(float(total.detach()))
            return total

        norm = body.step(parts, loss, self.learning_rate)
        return {**calibration(values, returns), "value_cross_entropy": sum(entropies), "value_grad_norm": norm}

    def target(self, returns: Tensor) -> Tensor:
        """Bin probabilities of a Gaussian around each return, clamped to the range: [R] -> [R, K]."""
        width = self.smoothing * (self.high - self.low) / self.bins
        held = returns.clamp(self.low, self.high).unsqueeze(1)
        mass = torch.special.ndtr((self.edges - held).double() / width)  # [R, K + 1]
        shares: Tensor = mass.diff(dim=1) / (mass[:, -1:] - mass[:, :1])
        return shares.to(returns.dtype)

    def decoded(self, logits: Tensor) -> Tensor:
        """Expectation over the bins: [R, K] -> [R]."""
        return logits.softmax(-1) @ self.centres


def _array(found: np.ndarray[tuple[int], np.dtype[np.float32]] | None) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    if found is None:
        raise ConfigurationError("BinnedCritic learns from values and returns: use an advantage that fills them (Gae)")
    return found


def stop_regressing(
    setting: Setting = Setting(),
    bins: int = 51,  # bins of the value distribution
    trace: float = 0.95,  # lambda of GAE
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """PPO with a binned critic, for rewards from 0 to 1."""
    critic = BinnedCritic(bins=bins, device=setting.device)
    return setting.run("stop_regressing", Gae(trace=trace), (Clip(clip, clip),), values=critic)
