"""What a reward model thinks of each attempt's last reply."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch

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

    _thread: ThreadPoolExecutor | None = field(default=None, init=False, repr=False, compare=False)

    def meet(self, policy: Policy) -> None:
        self.open()

    def open(self) -> None:
        """Read the model now, on no attempt's clock."""
        self.model.read()

    async def __call__(self, group: Group) -> list[float]:
        asked = [(attempt.task.messages, attempt.reply) for attempt in group.trajectories]
        if self._thread is None:
            # a thread begins with as many threads of its own as the machine has
            threads = torch.get_num_threads()
            self._thread = ThreadPoolExecutor(1, "scores", initializer=torch.set_num_threads, initargs=(threads,))
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.model.scores, asked)

    async def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
