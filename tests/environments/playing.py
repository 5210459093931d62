"""Play a world by its own demonstrations or by given replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.bundled.passages import Passages
from strop.types import Message, Observation, Task

LEVELS = {
    Arithmetic: range(1, 9),
    Compose: range(1, 5),
    Countdown: range(2, 6),
    Guess: range(1, 6),
    KeyValue: range(1, 7),
    Passages: range(1, 9),
}
WORLDS = [world(level) for world, levels in LEVELS.items() for level in levels]


def demonstrated(world: Any, task: Task) -> tuple[list[Message], list[float]]:
    """What was said after the task, and what each turn was paid."""
    return asyncio.run(_demonstrated(world.environment(), task))


async def _demonstrated(environment: Any, task: Task) -> tuple[list[Message], list[float]]:
    await environment.reset(task)
    said: list[Message] = []
    paid: list[float] = []
    while len(paid) < 20:
        said.append(environment.demonstrate())
        answer = await environment.step(said[-1])
        said += answer.messages
        paid.append(answer.reward)
        if answer.done:
            break
    await environment.close()
    return said, paid


def replied(world: Any, task: Task, replies: Sequence[str]) -> list[Observation]:
    """What the world answered to each reply."""

    async def talk() -> list[Observation]:
        environment = world.environment()
        await environment.reset(task)
        return [await environment.step(Message("assistant", reply)) for reply in replies]

    return asyncio.run(talk())
