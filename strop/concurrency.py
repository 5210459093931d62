"""Several pieces of work at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All at once, answers in order; the first error ends the others."""
    async with asyncio.TaskGroup() as tasks:
        begun = [tasks.create_task(work) for work in works]
    return [task.result() for task in begun]
