"""GRPO's advantage (Shao et al., 2402.03300): each rollout against its siblings, in units of their spread.

Papers: grpo
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group


@dataclass(frozen=True)
class GroupStandard(Advantage):
    """A = (r - mean) / (std + epsilon) within the group; std is the sample one (divided by G - 1).

    Dividing by the group's own spread biases the gradient: tasks near 0 % or 100 % weigh more. A group in which
    only one rollout counts says nothing and gets 0.
    """

    epsilon: float = 1e-6  # keeps the divisor above 0

    min_group: ClassVar[int] = 2
    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            rewards = group.rewards
            rewards = rewards - rewards[:1]  # [G]; equal ones give exactly 0
            spread = rewards.std(ddof=1) if len(rewards) > 1 else 0.0
            if len(rewards):
                advantage = (rewards - rewards.mean()) / (spread + self.epsilon)  # [G]
                for rollout, each in zip(group.scored, advantage.tolist(), strict=True):
                    rollout.set_advantage(each)
