"""VERL: GRPO advantages raised where the effective rank of hidden states, or its growth, is above average.

Title: Beyond the Exploration-Exploitation Trade-off: A Hidden State Approach for LLM Reasoning in RLVR
Paper: arXiv 2509.23808 (2025)
Claim: Up to 21.4 points more on Gaokao 2024.
Reading: The bonus is per rollout and on all its tokens; the release's script adds it to the last token. The paper's
    stride of 40 tokens is for long completions; the pocket model's have about 25 tokens.
Acts: advantage_mean > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.requirements import HIDDEN_AFTER, PolicyStatistic
from strop.types import Group

# VERL's advantage (2509.23808): effective rank of a rollout's hidden states, its growth, and the change of that growth.
#
# The release's script switches its bonus off with another flag. Prefixes end at every stride and at the end of the
# rollout, as in the newest release.

_LARGEST = 5.0  # bound of a metric's relative distance from its running mean


@dataclass
class HiddenRank(Advantage):
    """A + min(max(F, 0), |A| / bound), F = b * tanh(u_rank) + (1 - b) * tanh(u_growth), b = sigmoid(gain * u_change).

    u is a metric's distance from its running mean, relative to that mean. The bonus is never negative and never changes
    a sign. In the first batch there is no running mean, and the advantages of `inner` stay unchanged.
    """

    inner: Advantage
    stride: int = 40  # tokens between two measured prefixes
    bound: float = 2.0  # the bonus is at most |A| / bound
    gain: float = 2.0  # steepness of the sigmoid that mixes the two metrics
    step: float = 0.3  # update rate of the running means, per batch

    _means: NDArray[np.float64] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.stride < 1 or self.bound <= 1:
            raise ConfigurationError(f"HiddenRank needs stride >= 1 and bound > 1, got {self.stride} and {self.bound}")

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({HIDDEN_AFTER})

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if not rollouts:
            return
        metrics = np.stack(
            [rank_metrics(HIDDEN_AFTER.of(rollout).astype(np.float64), self.stride) for rollout in rollouts]
        )
        if self._means is not None:
            for rollout, bonus in zip(rollouts, self._bonus(metrics), strict=True):
                assert rollout.advantages is not None
                rollout.advantages = shaped(rollout.advantages, float(bonus), self.bound)
        before = np.zeros(3) if self._means is None else self._means
        self._means = (1 - self.step) * before + self.step * metrics.mean(0)

    def _bonus(self, metrics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bonus F of each rollout: [A]."""
        means = self._means
        assert means is not None
        rank, growth, change = np.clip((metrics - means) / (np.abs(means) + 1e-8), -_LARGEST, _LARGEST).T
        share = 1 / (1 + np.exp(-self.gain * change))
        return share * np.tanh(rank) + (1 - share) * np.tanh(growth)  # type: ignore[no-any-return]

    def state(self) -> dict[str, Any]:
        return {"means": None if self._means is None else self._means.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        self._means = None if state["means"] is None else np.array(state["means"])


def shaped(advantages: NDArray[np.float32], bonus: float, bound: float) -> NDArray[np.float32]:
    """Advantages plus the bonus, which is at least 0 and at most |A| / bound: [N]."""
    raised = advantages + np.minimum(max(bonus, 0.0), np.abs(advantages) / bound)
    return raised.astype(np.float32)


def rank_metrics(states: NDArray[np.float64], stride: int) -> NDArray[np.float64]:
    """Effective rank of the states [n, d], its mean growth over prefixes, and the mean change of that growth: [3]."""
    gram = states @ states.T  # [n, n], shared by all prefixes
    ends = [*range(stride, len(states), stride), len(states)]
    return np.array(
        [
            effective_rank_of_gram(gram),
            *growth_and_change([effective_rank_of_gram(gram[:end, :end]) for end in ends]),
        ]
    )


def effective_rank_of_gram(gram: NDArray[np.float64]) -> float:
    """exp of the entropy of the normalized singular values of centred states, from their Gram matrix [n, n]."""
    centred = gram - gram.mean(0) - gram.mean(1, keepdims=True) + gram.mean()
    singular = np.sqrt(np.clip(np.linalg.eigvalsh(centred), 0.0, None))
    singular = singular[singular > 1e-6 * max(float(singular.max(initial=0.0)), 1e-12)]
    if not len(singular):
        return 1.0  # one state, or identical states
    shares = singular / singular.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def growth_and_change(ranks: Sequence[float]) -> tuple[float, float]:
    """Means of d_j = m_j - mean(m_1 .. m_(j-1)) and of d_j - d_(j-1); 0 with too few values."""
    rises = [ranks[j] - float(np.mean(ranks[:j])) for j in range(1, len(ranks))]
    return (float(np.mean(rises)) if rises else 0.0), (float(np.mean(np.diff(rises))) if len(rises) > 1 else 0.0)


def effective_rank(
    setting: Setting = Setting(),
    stride: int = 4,
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO with the effective-rank bonus on its advantages."""
    return setting.run("effective_rank", HiddenRank(GroupStandard(), stride), (Clip(clip, clip),))
