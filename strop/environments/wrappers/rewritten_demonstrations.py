"""Episode wrapper that rewrites demonstrations; observations and rewards are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from strop.environments.format.demonstrations import demonstrating
from strop.roles import Episode
from strop.types import Message, Observation, Task


@dataclass
class Rewritten(Episode):
    """Episode `inner` with `rewrite` applied to each demonstrated completion."""

    inner: Episode
    rewrite: Callable[[str], str]

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        return await self.inner.step(completion)

    def demonstrate(self) -> Message:
        shown = demonstrating(self.inner).demonstrate()
        return Message(shown.role, self.rewrite(shown.content), shown.tool_calls)

    async def close(self) -> None:
        await self.inner.close()
