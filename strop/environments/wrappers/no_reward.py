"""A world of one reply that pays nothing itself: its checker is not ours and must run where it can be killed."""

from __future__ import annotations

from strop.roles import Environment
from strop.types import Message, Observation, Task


class Unpaid(Environment):
    """The first reply ends the attempt; the `Checked` reward says what it is worth."""

    async def reset(self, task: Task) -> None:
        pass

    async def step(self, reply: Message) -> Observation:
        return Observation(done=True)

    async def close(self) -> None:
        pass
