"""Lockstep with an engine process: it waits for the requests that follow from an answer, as if it ran on the same
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strop.workers.child import Child
from strop.workers.frames import Arrays

# Passes of the event loop before the process hears what was asked; as many as the torch engine gives its callers
# between two steps, so that both see the same requests together.
_PASSES = 12


@dataclass(eq=False)
class InStep:
    """Messages to send, and the decode step to send them after."""

    _unsaid: list[tuple[Mapping[str, Any], Arrays]] = field(default_factory=list)
    _passes_left: int = 0
    _num_finished: int = 0
    _saying: asyncio.Task[None] | None = None

    def say(self, child: Child, head: Mapping[str, Any], arrays: Arrays) -> None:
        self._unsaid.append((head, arrays))
        self._say_soon(child)

    def finished(self, child: Child, number: int) -> None:
        """The process has answered and waits; whoever heard the answer has so many passes to ask more."""
        self._num_finished = number
        self._say_soon(child)
        self._passes_left = _PASSES

    def over(self) -> None:
        """The process is gone."""
        if self._saying is not None:
            self._saying.cancel()
            self._saying = None  # a cancelled task is not done at once, and the next process must not wait for it
        self._unsaid.clear()
        self._num_finished = 0

    def _say_soon(self, child: Child) -> None:
        if self._saying is None or self._saying.done():
            self._passes_left = _PASSES
            self._saying = asyncio.get_running_loop().create_task(self._say_what_follows(child))

    async def _say_what_follows(self, child: Child) -> None:
        while self._passes_left:
            self._passes_left -= 1
            await asyncio.sleep(0)
        for head, arrays in self._unsaid:
            child.send(head, arrays)
        child.send({"kind": "settled", "after": self._num_finished})
        self._unsaid.clear()
