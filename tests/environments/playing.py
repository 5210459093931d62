"""Play an environment by its own demonstrations or by given completions."""

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
ENVS = [env(level) for env, levels in LEVELS.items() for level in levels]


def demonstrated(env: Any, task: Task) -> tuple[list[Message], list[float]]:
    """What was said after the task, and what each turn was paid."""
    return asyncio.run(_demonstrated(env.episode(), task))


async def _demonstrated(episode: Any, task: Task) -> tuple[list[Message], list[float]]:
    await episode.reset(task)
    said: list[Message] = []
    paid: list[float] = []
    while len(paid) < 20:
        said.append(episode.demonstrate())
        answer = await episode.step(said[-1])
        said += answer.messages
        paid.append(answer.reward)
        if answer.done:
            break
    await episode.close()
    return said, paid


def replied(env: Any, task: Task, completions: Sequence[str]) -> list[Observation]:
    """What the environment answered to each completion."""

    async def talk() -> list[Observation]:
        episode = env.episode()
        await episode.reset(task)
        return [await episode.step(Message("assistant", completion)) for completion in completions]

    return asyncio.run(talk())
