"""A virtual clock: asyncio whose time jumps to the next timer, so that hours of waiting take no time and no
probability.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            self._now += max(timeout or 0.0, 0.0)
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now


def run_virtually(work: Coroutine[Any, Any, Result]) -> tuple[Result, float]:
    """The result, and how many virtual seconds it took."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(work)
        return result, runner.get_loop().time()


class AtOnce(Executor):
    """Does what it is given before anything else can happen: on a virtual clock, work takes no time."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **more))
        except BaseException as error:
            future.set_exception(error)
        return future
