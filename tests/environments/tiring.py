"""Environments that some completions exhaust: in a step of their own, and in whatever step comes after."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


@dataclass(frozen=True)
class Tiring(Environment):
    """Two steps; `right` at the second pays 1, all else `wrong`."""

    wrong: float | None = 0.0
    tired_from: int = 99  # the step from which on it hangs, whatever is said
    pauses: str = ""  # a file: as long as it is not there, `pause` hangs, and makes it
    first: int = 0  # steps that were taken already
    level: int = 1
    name: str = "tiring"

    def task(self, index: int, heldout: bool = False) -> Task:
        return Task((Message("user", f"{2 * index + heldout}="),), "right", self.name, self.level)

    def episode(self) -> TiringPlay:
        return TiringPlay(self)

    def check(self, task: Task, completion: str) -> float:
        return float(completion == "right")


@dataclass
class TiringPlay(Episode):
    env: Tiring
    steps: int = field(default=0, init=False)
    is_trapped: bool = field(default=False, init=False)

    async def reset(self, task: Task) -> None:
        self.steps, self.is_trapped = self.env.first, False

    async def step(self, completion: Message) -> Observation:
        self.steps += 1
        if self.steps >= self.env.tired_from or self.is_trapped:
            time.sleep(3600)
        await self._wait(completion.content)
        self._suffer(completion.content)
        if self.steps < 2:
            return Observation((Message("user", "on"),), done=False, reward=None if self.env.wrong is None else 0.0)
        paid = 1.0 if completion.content == "right" else self.env.wrong
        return Observation(done=True, reward=None if self.env.wrong is None else paid)

    async def _wait(self, word: str) -> None:
        if self.steps == 2 and word in ("wait", "late"):
            await asyncio.sleep(3600 if word == "wait" else 0.001)
        if self.steps == 2 and word == "late":
            time.sleep(3600)

    def _suffer(self, word: str) -> None:
        if word == "trap":
            self.is_trapped = True
        if word == "pause" and not Path(self.env.pauses).exists():
            Path(self.env.pauses).touch()
            time.sleep(3600)
        if self.steps < 2:
            return
        if word == "hang":
            time.sleep(3600)
        if word == "compute":
            9**9**9**9
        while word == "catch":
            with suppress(Exception):
                time.sleep(3600)
        if word == "fill":
            raise MemoryError
        if word == "sink":
            raise RecursionError("too deep")
        if word == "break":
            raise ValueError("a bug")

    async def close(self) -> None:
        pass
