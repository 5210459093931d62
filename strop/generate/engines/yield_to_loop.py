"""Event-loop yields of an engine between steps, so that finished rollouts can send their next request."""

from __future__ import annotations

import asyncio

# After a request ended, so that whoever waited can ask again before the next step: its task wakes in the first; a group
# that ends, is scored and makes room for another one's rollouts needs about six.
PASSES = 12


async def let_others_run(passes: int) -> None:
    for _ in range(passes):
        await asyncio.sleep(0)
