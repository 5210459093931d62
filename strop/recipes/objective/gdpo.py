"""GDPO: each reward is normalized within its group before they are summed; here accuracy and brevity.

Title: GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization
Paper: arXiv 2601.05242 (2026)
Claim: Better than GRPO on several rewards at once: tool calls, mathematics and code.
Reading: The final normalization is over rollouts, not tokens, and is applied to a single reward as well.
Acts: advantage_beside_rewards > 0 with group_size=8
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError, nearest
from strop.filter.scoring import reward_names
from strop.recipes.setting import Setting
from strop.roles import Advantage, Reward
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group


@dataclass(frozen=True)
class Brief(Reward):
    """Length reward: 1 for a rollout of at most `limit` tokens over all its turns, else 0."""

    limit: int  # most tokens of a brief rollout
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ConfigurationError(f"Brief needs a limit >= 1 token, got {self.limit}")

    def __call__(self, group: Group) -> list[float]:
        return [float(rollout.num_tokens <= self.limit) for rollout in group.rollouts]


# GDPO's advantage (2601.05242). Normalizing the sum of rewards loses information: in their groups a rollout that wins
# one of two rewards and one that wins both can get the same advantage.


@dataclass(frozen=True)
class DecoupledStandard(Advantage):
    """S = sum_k weight_k * (r_k - mean) / (std + epsilon) in the group; A = (S - mean) / (std + epsilon) over the
    batch.

    `weights` apply after the first normalization, which would cancel them. The weights of the rewards themselves are
    not used.
    """

    weights: Mapping[str, float] = field(default_factory=dict)  # by reward name; 1 for rewards not named
    epsilon: float = 1e-4

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        names = sorted({name for rollout in rollouts for name in rollout.rewards})
        if unknown := sorted(set(self.weights) - set(names)):
            raise ConfigurationError(
                f"DecoupledStandard has a weight for reward {unknown[0]!r}: {nearest(unknown[0], names)}"
            )
        sums = np.concatenate([self._sum(group, names) for group in groups] or [np.zeros(0)])
        for rollout, value in zip(rollouts, _standard(sums, self.epsilon), strict=True):
            rollout.set_advantage(float(value))

    def _sum(self, group: Group, names: Sequence[str]) -> NDArray[np.float64]:
        """Weighted sum of a group's normalized rewards: [G]."""
        total = np.zeros(len(group.scored))
        for name in names:
            rewards = np.array([rollout.rewards.get(name, 0.0) for rollout in group.scored], dtype=np.float64)
            total += self.weights.get(name, 1.0) * _standard(rewards, self.epsilon)
        return total


def _standard(values: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """(x - mean) / (std + epsilon), std with n - 1; equal values give exactly 0."""
    values = values - values[:1]
    std = values.std(ddof=1) if len(values) > 1 else 0.0
    if std == 0.0:
        return np.zeros_like(values)
    return (values - values.mean()) / (std + epsilon)  # type: ignore[no-any-return]


def gdpo(
    setting: Setting = Setting(env="countdown:3"),
    limit: int = 22,  # most tokens of a brief rollout
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """The environment's reward and a length reward for at most `limit` tokens, normalized separately."""
    run = setting.run("gdpo", DecoupledStandard(), (Clip(clip, clip),), reduction=SequenceMean())
    run.rewards = (*run.rewards, Brief(limit))
    unweighted = [
        name for name, reward in zip(reward_names(run.rewards), run.rewards, strict=True) if not reward.weight
    ]
    run.advantage = DecoupledStandard(dict.fromkeys(unweighted, 0.0))
    return run
