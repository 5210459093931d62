"""The parent's end of a process that runs foreign code: ask it within a deadline, kill it with all it started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Any

from strop.filter.keeper import KILLED
from strop.processes.answers import NoAnswer, parsed
from strop.processes.limits import lean_environment

START_SECONDS = 60.0
_REAP_SECONDS = 5.0
_LONGEST_LINE = 1 << 24  # bytes


class Killable:
    """A child that answers one message at a time; after `NoAnswer` it must be killed."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, module: str) -> Killable:
        """A new process that runs a module's main; it must begin with `fork_kept`, or what it starts can outlive it."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            limit=_LONGEST_LINE,
            env=lean_environment(),
        )
        return cls(process)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def exchange(self, message: bytes, seconds: float) -> dict[str, Any]:
        """Send a frame and wait for its answer."""
        try:
            async with asyncio.timeout(seconds):
                line = await self._send(message)
        except TimeoutError:
            raise NoAnswer(f"no answer within {seconds:g} s") from None
        if not line.endswith(b"\n"):
            raise NoAnswer(f"its process died ({_ending(await self._process.wait())})")
        return parsed(line)

    async def kill(self) -> None:
        """End the child and whatever it started; returns when it is gone."""
        with suppress(ProcessLookupError):
            self._process.terminate()  # its keeper kills all that is left, then ends
        try:
            await asyncio.wait_for(self._process.communicate(), _REAP_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    async def _send(self, message: bytes) -> bytes:
        """Write a frame and read a line; a short line says that the process is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        with suppress(ConnectionError):
            stdin.write(message)
            await stdin.drain()
        try:
            return await stdout.readline()
        except ValueError:
            raise NoAnswer(f"answered with a line of more than {_LONGEST_LINE} bytes") from None


def _ending(code: int) -> str:
    number = -code if code < 0 else code - KILLED
    return f"signal {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit code {code}"
