"""Reward-model score of each rollout's last completion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from strop.models.torch_setup import BesideLoop
from strop.roles import Reward
from strop.types import Group

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.generate.reward_model import RewardModel


@dataclass
class Scored(Reward):
    """Unbounded reward-model scores; all siblings are scored in one batch, in a separate thread.

    A completion that exceeds the reward model's context gets no score: its rollout fails.
    """

    model: RewardModel
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # a thread computes, and nothing of a completion is run

    _beside: BesideLoop = field(default_factory=BesideLoop, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self.open_resources()

    def open_resources(self) -> None:
        """Read the model now, on no rollout's clock."""
        self.model.read()

    async def __call__(self, group: Group) -> list[float]:
        asked = [(rollout.task.messages, rollout.completion) for rollout in group.rollouts]
        return await self._beside(self.model.scores, asked)

    async def close(self) -> None:
        self._beside.close()
