"""Turns of the event loop that an engine gives to others before it goes on."""

from __future__ import annotations

import asyncio

PASSES = 12  # after a request ended: its caller scores, and asks for the next one


async def let_others_run(passes: int) -> None:
    for _ in range(passes):
        await asyncio.sleep(0)
