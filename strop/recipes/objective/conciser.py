"""ConciseR: stage 1 trains accuracy, stage 2 rewards brevity in groups where every rollout is right.

Title: Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning
Paper: arXiv 2505.21178 (2025)
Claim: Shorter answers than comparable models at equal or better accuracy.
Reading: The paper's length reward was not found; 1 - tokens / max_tokens is added. With GRPO's normalization any
    linearly falling reward gives the same advantage. Start stage 2 from the model of stage 1.
Acts: advantage_beside_rewards > 0 with group_size=2, groups_per_step=16
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.success import ROUNDING
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.reshaped_rewards import with_reshaped_rewards
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.types import Group

# Stage 2 (2505.21178) trains on groups without reward contrast, which stage 1 drops: no `ZeroVariance` here.


@dataclass(frozen=True)
class BrevityWhenAllRight(Advantage):
    """Advantage by `inner` on r' = r + 1 - tokens / max_tokens if all rollouts of the group reach `right`, else r."""

    inner: Advantage
    max_tokens: int  # of a rollout
    right: float = 1.0  # reward of a right rollout

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigurationError(f"BrevityWhenAllRight needs max_tokens >= 1, got {self.max_tokens}")

    def __call__(self, groups: Sequence[Group]) -> None:
        with_reshaped_rewards(groups, self._rewards, self.inner)

    def _rewards(self, group: Group) -> NDArray[np.float64]:
        rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
        if not np.all(rewards >= self.right - ROUNDING):
            return rewards
        lengths = np.array([rollout.num_tokens for rollout in group.scored], dtype=np.float64)
        return rewards + 1.0 - lengths / self.max_tokens


def conciser(
    setting: Setting = Setting(env="countdown:3"),
    stage: int = 2,  # 1 (accuracy) or 2 (brevity)
    low: float = 0.2,  # lower clip range: ratios are at least 1 - low
    high: float = 0.28,  # upper clip range: ratios are at most 1 + high
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """GRPO with clip-higher, dynamic sampling and an entropy bonus (stage 1), or with a brevity reward (stage 2)."""
    if stage not in (1, 2):
        raise ConfigurationError(f"conciser has stages 1 and 2, got stage={stage}")
    if stage == 1:
        losses = (Clip(low, high), Entropy(entropy))
        return setting.run("conciser", GroupStandard(), losses, gates=(ZeroVariance(),))
    return setting.run("conciser", BrevityWhenAllRight(GroupStandard(), setting.max_tokens), (Clip(low, high),))
