"""DRA-GRPO: GRPO with each reward divided by the rollout's summed similarity to its siblings.

Title: DRA-GRPO: Exploring Diversity-Aware Reward Adjustment for R1-Zero-Like Training of Large Language Models
Paper: arXiv 2505.09655 (2025)
Claim: 58.2 % on average over five mathematics benchmarks from 7,000 examples, for about 55 dollars.
Reading: Similarity is of token n-grams, so that no second model is needed; the paper compares sentence embeddings. It
    is summed over the group, not over one device.
Acts: advantage_beside_rewards > 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.reshaped_rewards import with_reshaped_rewards
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Rollout

_EPSILON = 1e-6


@dataclass(frozen=True)
class DiversityAdjusted(Advantage):
    """r' = r / (sum_j s_ij + 1e-6), s the cosine of n-gram counts, itself included; `inner` computes advantages of r'.

    Counts have no negative cosine, so the sum is never below 1. A reward of 0 stays 0: diversity among wrong rollouts
    is not rewarded.
    """

    inner: Advantage
    size: int = 2  # of the longest n-gram; shorter ones count as well

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"DiversityAdjusted needs n-grams of size >= 1, got {self.size}")

    def __call__(self, groups: Sequence[Group]) -> None:
        with_reshaped_rewards(groups, self.rewards, self.inner)

    def rewards(self, group: Group) -> NDArray[np.float64]:
        """Adjusted rewards: [G]."""
        rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
        return rewards / (self._similarity(group).sum(1) + _EPSILON)  # type: ignore[no-any-return]

    def _similarity(self, group: Group) -> NDArray[np.float64]:
        """Cosine similarities, 1 on the diagonal: [G, G]."""
        counts = [self._count(rollout) for rollout in group.scored]
        names = {name: column for column, name in enumerate(sorted({name for count in counts for name in count}))}
        table = np.zeros((len(counts), len(names)))
        for row, count in zip(table, counts, strict=True):
            row[[names[name] for name in count]] = list(count.values())
        norms = np.linalg.norm(table, axis=1, keepdims=True)
        unit = table / np.where(norms > 0, norms, 1.0)
        similarity: NDArray[np.float64] = unit @ unit.T
        np.fill_diagonal(similarity, 1.0)  # also of a rollout without tokens
        return similarity

    def _count(self, rollout: Rollout) -> Counter[tuple[int, ...]]:
        """Counts of the n-grams of up to `size` sampled tokens, within turns."""
        found: Counter[tuple[int, ...]] = Counter()
        for turn in rollout.turns:
            tokens = turn.tokens.tolist()
            for size in range(1, self.size + 1):
                found.update(tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1))
        return found


def dra_grpo(
    setting: Setting = Setting(env="countdown:3"),
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """GRPO on diversity-adjusted rewards."""
    advantage = DiversityAdjusted(GroupStandard(epsilon=1e-4))
    return setting.run("dra_grpo", advantage, (Clip(clip, clip),), reduction=SequenceMean())
