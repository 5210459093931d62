"""Termination of a sandbox process and all its descendants."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress

_CHUNK = 1 << 16


def kill(process: Process) -> None:
    """Its session, and with it its namespace."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def ended(process: Process) -> None:
    """Kill it; what it still had to say is thrown away, because who is not read to the end is waited for in vain."""
    kill(process)
    await asyncio.gather(*(_emptied(stream) for stream in (process.stdout, process.stderr) if stream is not None))
    await process.wait()


async def _emptied(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK):
        pass
