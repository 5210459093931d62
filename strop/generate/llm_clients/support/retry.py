"""Retries with backoff until a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from strop.errors import LLMClientError

Result = TypeVar("Result")


class LaterError(LLMClientError):
    """Temporary error; retry, after the given seconds if the server names them."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


async def patiently(ask: Callable[[float], Awaitable[Result]], seconds: float) -> Result:
    """Ask, told how much time is left; again after 1, 2, 4, ... seconds or as long as it says, until time is over."""
    clock = asyncio.get_running_loop().time
    until, pause, problem = clock() + seconds, 1.0, ""
    while True:
        try:
            async with asyncio.timeout_at(until):
                return await ask(until - clock())
        except TimeoutError:
            raise LLMClientError(f"no answer within {seconds:g} s{problem}") from None
        except LaterError as error:
            # one who says "at once" each time is not asked without pause either
            wait = pause if error.after is None else max(error.after, pause / 16)
            problem = f", last: {error}"
        if clock() + wait >= until:
            raise LLMClientError(f"no answer within {seconds:g} s{problem}; the next try would be after {wait:g} s")
        await asyncio.sleep(wait)
        pause *= 2
