"""A world whose demonstrations somebody rewrites; what it answers and pays stays its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from strop.environments.format.demonstrations import demonstrating
from strop.roles import Environment
from strop.types import Message, Observation, Task


@dataclass
class Rewritten(Environment):
    """`inner`, and `rewrite` of every reply that it demonstrates."""

    inner: Environment
    rewrite: Callable[[str], str]

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, reply: Message) -> Observation:
        return await self.inner.step(reply)

    def demonstrate(self) -> Message:
        shown = demonstrating(self.inner).demonstrate()
        return Message(shown.role, self.rewrite(shown.content), shown.tool_calls)

    async def close(self) -> None:
        await self.inner.close()
