"""Learn to be right first, then to be short where every rollout is right.

Title: Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning
Paper: arXiv 2505.21178 (2025)
Claim: Shorter answers than other models of its kind at equal or better accuracy.
Reading: The paper's length reward was not found: 1 - tokens / max_tokens is added. With GRPO's division any falling
    line gives the same advantage. Start stage 2 from the model of stage 1.
Acts: credit_beside_rewards > 0 with group_size=2, groups_per_step=16
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
from strop.training.advantages.group_standard import GroupStandard
from strop.training.arithmetic.reshaped_rewards import with_reshaped_rewards
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.types import Group

# ConciseR's second stage (2505.21178): length counts only where every rollout of a group is right.
#
# The paper's length reward was not found; the plainest reading is 1 + (1 - tokens / max_tokens). With an inner
# advantage that divides by the group's spread any falling line gives the same advantage, minus the standardised length.
# The first stage drops groups without contrast, and this one needs just those: no `ZeroVariance` here.


@dataclass(frozen=True)
class BrevityWhenAllRight(Advantage):
    """r' = r + 1 - tokens / max_tokens where all rollouts of the group reach `right`, else r; `inner` judges r'."""

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
    stage: int = 2,  # 1 (right) or 2 (short)
    low: float = 0.2,  # the lower bound of a ratio is 1 - low
    high: float = 0.28,  # the upper bound of a ratio is 1 + high
    entropy: float = 0.001,  # weight of the entropy bonus
) -> Run:
    """Stage 1 is GRPO with clip-higher, dynamic sampling and an entropy bonus; start stage 2 from its model."""
    if stage not in (1, 2):
        raise ConfigurationError(f"conciser has stages 1 and 2, got {stage}")
    if stage == 1:
        losses = (Clip(low, high), Entropy(entropy))
        return setting.run("conciser", GroupStandard(), losses, gates=(ZeroVariance(),))
    return setting.run("conciser", BrevityWhenAllRight(GroupStandard(), setting.max_tokens), (Clip(low, high),))
