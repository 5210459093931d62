"""A token costs the more, the more often its task is solved.

Title: Just Enough Thinking: Efficient Reasoning with Adaptive Length Penalties Reinforcement Learning
Paper: arXiv 2506.05256 (2025)
Claim: Half of the tokens at little loss, and those spared on easy tasks go to hard ones.
Reading: The rollout's own length is paid for; readings of the paper print the longest, which would leave no signal
    within a group. The paper's beta of 1e-7 is for answers a thousand times as long as the pocket model's.
Acts: credit_beside_rewards > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.recipes.setting import Setting
from strop.roles import Advantage
from strop.run import Run
from strop.success import ROUNDING
from strop.training.advantages.group_standard import GroupStandard
from strop.training.arithmetic.reshaped_rewards import with_reshaped_rewards
from strop.training.losses.clip import Clip
from strop.types import Group

# ALP (2506.05256): a token costs the more, the more often the task is solved.
#
# Reading: the rollout's own length is what is paid for (two readings of the paper print the maximum instead, which
# would leave no signal within a group). Right and wrong rollouts both pay.


@dataclass(frozen=True)
class AdaptiveLength(Advantage):
    """r' = r - beta * tokens * max(solve rate, 1 / K), K the size of the group; `inner` judges r'.

    The paper's beta is for answers of thousands of tokens. Where `inner` divides by the group's spread, beta hardly
    matters in groups that are all right or all wrong, and its epsilon does.
    """

    inner: Advantage
    beta: float = 1e-7  # price of a token in a group that is all right
    right: float = 1.0  # the reward of a solved rollout

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        with_reshaped_rewards(groups, self.rewards, self.inner)

    def rewards(self, group: Group) -> NDArray[np.float64]:
        """After the price of their tokens: [G]."""
        rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
        lengths = np.array([rollout.num_tokens for rollout in group.scored], dtype=np.float64)
        rate = float((rewards >= self.right - ROUNDING).mean()) if len(rewards) else 0.0
        return rewards - self.beta * lengths * max(rate, 1 / max(len(rewards), 1))


def alp(
    setting: Setting = Setting(env="countdown:3"),
    beta: float = 1e-3,  # price of a token in a group that is all right
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """The paper's beta of 1e-7 is for answers a thousand times as long."""
    return setting.run("alp", AdaptiveLength(GroupStandard(), beta), (Clip(clip, clip),))
