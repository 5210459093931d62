"""Computation in a thread next to the event loop, with the loop's number of torch threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

Found = TypeVar("Found")


@dataclass
class BesideLoop:
    """Single worker thread for computations.

    A new thread would compute with as many torch threads as the machine has cores, and bits depend on that number.
    """

    _thread: ThreadPoolExecutor | None = field(default=None, init=False, repr=False, compare=False)

    async def __call__(self, work: Callable[..., Found], *given: Any) -> Found:
        if self._thread is None:
            threads = torch.get_num_threads()
            self._thread = ThreadPoolExecutor(1, "scores", initializer=torch.set_num_threads, initargs=(threads,))
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
