"""Sandbox process with its limits and its output, until it ends, is killed or times out."""

from __future__ import annotations

import asyncio
import resource
import time
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress

from strop.sandbox.execution import MOST_PROCESSES, Allowance, Ending, Ran
from strop.sandbox.kill_tree import ended, kill

_CHUNK = 1 << 16


def limit(allowance: Allowance, more: Mapping[int, int] | None = None) -> None:
    """Of every process in there; wall-clock time is for all of them together. `more` goes before."""
    usual = {
        resource.RLIMIT_CPU: int(allowance.seconds) + 1,
        resource.RLIMIT_AS: allowance.memory,
        resource.RLIMIT_FSIZE: allowance.memory,
        resource.RLIMIT_NPROC: MOST_PROCESSES,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in (usual | dict(more or {})).items():
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


async def watched(process: Process, stdin: bytes, allowance: Allowance, begun: float) -> Ran:
    """What comes of it; nothing of it is left then."""
    assert process.stdout is not None and process.stderr is not None
    said = bytearray(), bytearray()
    streams = zip((process.stdout, process.stderr), said, strict=True)
    readers = [_read(stream, into, allowance.output, process) for stream, into in streams]
    ending = Ending.FINISHED
    try:
        async with asyncio.timeout(allowance.seconds):
            is_cut, is_other_cut, _ = await asyncio.gather(*readers, _fed(process, stdin))
            if is_cut or is_other_cut:
                ending = Ending.OUTPUT
            else:
                await process.wait()
    except TimeoutError:
        ending = Ending.TIMEOUT
    await ended(process)
    code = process.returncode or 0
    if ending is Ending.FINISHED and code < 0:
        ending = Ending.KILLED
    out, err = (each.decode("utf-8", errors="replace") for each in said)
    return Ran(ending, out, err, code, time.monotonic() - begun)


async def _read(stream: asyncio.StreamReader, into: bytearray, most: int, process: Process) -> bool:
    """Whether there was more than may be said; then it is killed, and the rest thrown away."""
    is_cut = False
    while heard := await stream.read(_CHUNK):
        into += b"" if is_cut else heard
        if len(into) > most:
            kill(process)
            del into[most:]
            is_cut = True
    return is_cut


async def _fed(process: Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()
