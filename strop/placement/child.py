"""The parent's hold on a process that hosts an engine: start it, hear from it, end it with all it started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from strop.filter.keeper import KILLED
from strop.placement.frames import Arrays, Frame, Frames

_REAP_SECONDS = 2.0
_LAST_BYTES, _LAST_LINES = 4096, 12
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Lost(Exception):  # noqa: N818 (it says what happened; whoever starts processes again catches it)
    """The process is gone or does not answer."""


class Child:
    """One process, from its start to its end; it dies with this one, however this one dies."""

    def __init__(self, threads: int) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "strop.placement.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # Ctrl-C is for us: we end it when we are done
            env=os.environ | dict.fromkeys(_THREADS, str(threads)),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._frames = Frames(self._process.stdout.fileno(), self._process.stdin.fileno())
        self.num_heard = 0  # messages
        self.lost: asyncio.Future[str] | None = None  # done when nothing more can come; says why

    def attach(self, receive: Callable[[Frame], None]) -> None:
        """Be heard by the running loop."""
        lost = self.lost = asyncio.get_running_loop().create_future()

        def hear(frame: Frame) -> None:
            self.num_heard += 1
            receive(frame)

        self._frames.attach(hear, lambda why: None if lost.done() else lost.set_result(why))

    def send(self, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        self._frames.send(head, arrays)

    async def wait_for(self, answer: asyncio.Future[Any], seconds: float) -> Any:
        """An answer, or Lost when the process ends or is silent too long."""
        assert self.lost is not None
        done, _ = await asyncio.wait({answer, self.lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer in done:
            return answer.result()
        raise Lost("" if done else f"no answer within {seconds:g} s")

    async def until_silent(self, seconds: float) -> None:
        """Ask for a sign of life again and again; raises Lost when there was none for so long.

        Silence is counted in rounds and not by the clock, so that the process is not blamed for a pause of ours.
        """
        assert self.lost is not None
        rounds, missed = 4, 0
        while not self.lost.done() and missed < rounds:
            self.send({"kind": "ping"})
            heard = self.num_heard
            await asyncio.wait({self.lost}, timeout=seconds / rounds)
            missed = 0 if self.num_heard > heard else missed + 1
        raise Lost(f"no sign of life for {seconds:g} s" if missed == rounds else "")

    def end(self, patience: float) -> str:
        """Kill it and whatever it started, within a bound; answers how it had ended and what it said last.

        `patience`: seconds in which it may still end by itself, where how it ended is worth knowing.
        """
        self._frames.detach()
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.terminate()  # its keeper kills all that is left, then ends
            code = None
        try:
            self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()
        return ("killed" if code is None else _ending(code)) + self._last_words()

    def stacks(self, pid: int, seconds: float = 1.0) -> str:
        """What its threads are doing, as its interpreter itself tells; from any thread."""
        before, until = self._num_said, time.monotonic() + seconds
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
            while self._num_said == before and time.monotonic() < until:
                time.sleep(0.01)
        time.sleep(0.01)  # the rest of it
        return self._said(before) or f"process {pid} does not answer SIGUSR1\n"

    def _last_words(self) -> str:
        lines = self._said(max(0, self._num_said - _LAST_BYTES)).strip().splitlines()[-_LAST_LINES:]
        self._words.close()
        return "; it said last:\n" + "\n".join(lines) if lines else ""

    @property
    def _num_said(self) -> int:
        """Bytes."""
        return os.fstat(self._words.fileno()).st_size

    def _said(self, start: int) -> str:
        # not read(): the process writes where the position of the file is, which both share
        return os.pread(self._words.fileno(), self._num_said - start, start).decode(errors="replace")


def _ending(code: int) -> str:
    number = -code if code < 0 else code - KILLED
    return f"ended by {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit code {code}"
