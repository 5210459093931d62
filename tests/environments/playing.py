"""Play an environment by its own demonstrations or by given completions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.compose import Compose
from strop.environments.bundled.countdown import Countdown
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.bundled.passages import Passages
from strop.environments.isolation.pool import Pooled
from strop.environments.isolation.subprocess import Apart
from strop.environments.wrappers.around import Around
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.roles import Environment
from strop.types import Message, Observation, Rollout, Sampling, Start, Task

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


def played(model: Path, env: Environment, words: list[str], seconds: float = 60.0) -> list[Rollout]:
    """One rollout for each word, all together: the word is what every completion says."""
    engine = Scripted(lambda prompt, key: words[key])
    engine.open(model)

    async def rollouts() -> list[Rollout]:
        policy = Policy.load(model, engine, Sampling(max_tokens=16), 256)
        starts = [Start(f"0/{key}", key) for key in range(len(words))]
        inner = env.inner if isinstance(env, Around) and not isinstance(env, Pooled) else env
        try:
            talks = [policy.dialogue(env.task(0), start) for start in starts]
            return list(await asyncio.gather(*(play(Chat(), env, talk, seconds) for talk in talks)))
        finally:
            if isinstance(inner, Apart | Pooled):
                await inner.close()

    return asyncio.run(rollouts())
