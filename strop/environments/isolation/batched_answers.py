"""Batching of asynchronous results: callers resume once `size` results are ready, without waiting for the slowest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from strop.errors import ConfigurationError

_Result = TypeVar("_Result")


@dataclass
class Blocks:
    """Batches of the first `size` ready results, released in order of their numbers; all of them once no work is
    pending.
    """

    size: int
    _working: int = field(default=0, init=False, repr=False, compare=False)
    _ready: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"a block needs a size >= 1, got {self.size}")

    async def through(self, number: int, work: Awaitable[_Result]) -> _Result:
        """The result of this work, when its block is whole; a failure waits for nobody."""
        self._working += 1
        try:
            result = await work
        except BaseException:
            self._working -= 1
            self._hand_on()
            raise
        self._working -= 1
        mine = (number, asyncio.get_running_loop().create_future())
        self._ready.append(mine)
        self._hand_on()
        try:
            await mine[1]
        finally:
            if mine in self._ready:  # it was cancelled
                self._ready.remove(mine)
        return result

    def _hand_on(self) -> None:
        while len(self._ready) >= self.size or (self._ready and not self._working):
            block, self._ready = self._ready[: self.size], self._ready[self.size :]
            for _, waiting in sorted(block, key=lambda each: each[0]):
                # not at once, or the last that was ready would go before all others
                waiting.get_loop().call_soon(_release, waiting)


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():  # it may have been cancelled
        waiting.set_result(None)
