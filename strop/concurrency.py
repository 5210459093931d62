"""Concurrent execution of coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run all at once and return results in order; the first error cancels the others."""
    async with asyncio.TaskGroup() as tasks:
        begun = [tasks.create_task(work) for work in works]
    return [task.result() for task in begun]
