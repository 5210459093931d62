"""What a reward model thinks of each attempt's last reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from strop.models.off_loop_compute import BesideLoop
from strop.roles import Reward
from strop.types import Group

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.generate.reward_model import RewardModel


@dataclass
class Scored(Reward):
    """Its scores as they are, without bounds; all siblings are asked about in one pass, in a thread of their own.

    A reply that the reward model cannot read whole gets no score: its attempt fails.
    """

    model: RewardModel
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # a thread computes, and nothing of a reply is run

    _beside: BesideLoop = field(default_factory=BesideLoop, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self.open()

    def open(self) -> None:
        """Read the model now, on no attempt's clock."""
        self.model.read()

    async def __call__(self, group: Group) -> list[float]:
        asked = [(attempt.task.messages, attempt.reply) for attempt in group.trajectories]
        return await self._beside(self.model.scores, asked)

    async def close(self) -> None:
        self._beside.close()
