"""An environment of one completion that pays nothing itself: its checker is not ours and must run where it can be
killed.
"""

from __future__ import annotations

from strop.roles import Episode
from strop.types import Message, Observation, Task


class Unpaid(Episode):
    """The first completion ends the rollout; the `Checked` reward says what it is worth."""

    async def reset(self, task: Task) -> None:
        pass

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True)

    async def close(self) -> None:
        pass
