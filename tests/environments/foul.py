"""An environment that does what environments must not do, when a completion tells it to; the third step ends a
rollout.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import cast

from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task
from tests.filter.foul import forge


@dataclass(frozen=True)
class Foul(Environment):
    """Pays 1 at the third step, unless the completion there is a word that means trouble."""

    level: int = 1
    name: str = "foul"

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", f"{2 * index + heldout}="),), "1", self.name, self.level)

    def episode(self) -> FoulPlay:
        return FoulPlay()

    def check(self, task: Task, completion: str) -> float:
        return 1.0


@dataclass
class FoulPlay(Episode):
    steps: int = field(default=0, init=False)

    async def reset(self, task: Task) -> None:
        self.steps = 0

    async def step(self, completion: Message) -> Observation:
        self.steps += 1
        if self.steps < 3:
            return Observation((Message("user", "on"),), done=False, reward=0.0)
        await trouble(completion.content)
        paid = {"paid nan": float("nan"), "paid text": "1"}.get(completion.content, float(completion.content.isdigit()))
        said = (Message("nobody", "on"),) if completion.content == "nobody" else ()
        return Observation(said, done=True, reward=cast(float, paid))

    async def close(self) -> None:
        pass


async def trouble(word: str) -> None:
    if word == "wait":
        await asyncio.sleep(3600)
    if word == "hang":
        time.sleep(3600)
    if word == "raise":
        raise OSError("the sandbox is gone")
    if word == "exit":
        os._exit(3)
    if word.startswith("forge "):
        forge(word.removeprefix("forge "), 5)  # after the environment, reset and two steps
    if word == "fork":
        subprocess.Popen(["sleep", "300"], start_new_session=True)


@dataclass(frozen=True)
class Unloadable(Foul):
    """Cannot be unpickled anywhere."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _refuse, ("no such simulator",)


def _refuse(reason: str) -> None:
    raise OSError(reason)
