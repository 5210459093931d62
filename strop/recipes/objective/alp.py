"""ALP: adaptive length penalty whose price per token grows with the task's online solve rate.

Title: Just Enough Thinking: Efficient Reasoning with Adaptive Length Penalties Reinforcement Learning
Paper: arXiv 2506.05256 (2025)
Claim: Half of the tokens at little loss; the tokens saved on easy tasks are spent on hard ones.
Reading: The penalty is on the rollout's own length. Other readings of the paper use the group's longest, which leaves
    no signal within a group. The paper's beta of 1e-7 is for completions a thousand times as long as the pocket
    model's.
Acts: advantage_beside_rewards > 0
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
from strop.success import is_right
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.reshaped_rewards import with_reshaped_rewards
from strop.training.losses.clip import Clip
from strop.types import Group

# ALP (2506.05256): right and wrong rollouts are both penalized, each for its own length.


@dataclass(frozen=True)
class AdaptiveLength(Advantage):
    """Advantage by `inner` on r' = r - beta * tokens * max(solve rate, 1 / K), K the group size.

    The paper's beta is for completions of thousands of tokens. Where `inner` divides by the group's standard deviation,
    beta hardly matters in groups that are all right or all wrong; there the epsilon of `inner` matters.
    """

    inner: Advantage
    beta: float = 1e-7  # penalty per token in a group that is all right

    min_group: ClassVar[int] = 2
    needs_success: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        with_reshaped_rewards(groups, self.rewards, self.inner)

    def rewards(self, group: Group) -> NDArray[np.float64]:
        """Rewards minus the length penalty: [G]."""
        rewards = np.array([rollout.reward for rollout in group.scored], dtype=np.float64)
        lengths = np.array([rollout.num_tokens for rollout in group.scored], dtype=np.float64)
        rate = float(np.mean([is_right(rollout) for rollout in group.scored])) if len(rewards) else 0.0
        return rewards - self.beta * lengths * max(rate, 1 / max(len(rewards), 1))


def alp(
    setting: Setting = Setting(env="countdown:3"),
    beta: float = 1e-3,  # penalty per token in a group that is all right
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO with an adaptive length penalty; the paper's beta of 1e-7 is for completions a thousand times as long."""
    return setting.run("alp", AdaptiveLength(GroupStandard(), beta), (Clip(clip, clip),))
