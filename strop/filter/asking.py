"""How rewards ask advisers: many questions at once, each answered alike whenever it is asked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from strop.types import Task

Result = TypeVar("Result")


def text_of(task: Task) -> str:
    """What is asked."""
    return "\n".join(message.content for message in task.messages)


def key_of(text: str) -> int:
    """The same question is answered alike, whenever it is asked."""
    return int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:8], "big") >> 1


async def all_of(works: Iterable[Awaitable[Result]]) -> list[Result]:
    """All at once; the first error is raised when all are done."""
    found = await asyncio.gather(*works, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]
