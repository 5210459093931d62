"""Parent's handle of a child process: start, requests, answers, and the end of all its descendants."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from strop.workers.frames import LONGEST, Arrays, Frame, Frames
from strop.workers.keeper import KILLED
from strop.workers.limits import lean_environment
from strop.workers.untrusted_answers import Died, NoAnswer, TooLate

START_SECONDS = 300.0  # imports and a model from disk, on a machine that is busy
_REAP_SECONDS = 2.0
_LAST_BYTES, _LAST_LINES = 4096, 12
_LONGEST_FOREIGN = 1 << 24  # bytes


class Child:
    """One process, from its start to its end; it dies with this one, however this one dies.

    Its `module` has a function `serve(frames)`. With an `environment` it runs strop's code; without one it runs foreign
    code, with minimal environment variables, limited memory and message size, and discarded output. Start it from a
    thread that lives as long as the child: to Linux, that thread is the parent. `scratch` is a folder that is removed
    with it.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None, scratch: Path | None = None) -> None:
        is_foreign = environment is None
        self._words = None if is_foreign else tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        with _deaf():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "strop.workers.entry", module, *([str(scratch)] if scratch else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words or subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us: we end it when we are done
                env=lean_environment() if environment is None else environment,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        pipes = self._process.stdout.fileno(), self._process.stdin.fileno()
        self._frames = Frames(*pipes, longest=_LONGEST_FOREIGN if is_foreign else LONGEST)
        self._frames.send({"path": sys.path})
        self._num_heard, self._num_asked = 0, 0  # messages, questions
        self._lost: asyncio.Future[str] | None = None  # done when nothing more can come; says why
        self._answer: asyncio.Future[Frame] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked more."""
        return self._process.poll() is None and (self._lost is None or not self._lost.done())

    # ---- hearing all it says

    def attach(self, receive: Callable[[Frame], None]) -> None:
        """Be heard by the running loop."""
        lost = self._lost = asyncio.get_running_loop().create_future()

        def hear(frame: Frame) -> None:
            self._num_heard += 1
            receive(frame)

        self._frames.attach(hear, lambda why: None if lost.done() else lost.set_result(why))

    def send(self, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """As soon as the pipe takes it; without a loop, what it does not take now waits for `tell` or `attach`."""
        self._frames.send(head, arrays)

    async def wait_for(self, answer: asyncio.Future[Any], seconds: float) -> Any:
        """An answer, or NoAnswer when the process ends, says what nobody understands, or is silent too long."""
        assert self._lost is not None
        done, _ = await asyncio.wait({answer, self._lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer in done:
            return answer.result()
        raise NoAnswer(self._lost.result()) if done else TooLate(f"no answer within {seconds:g} s")

    async def until_silent(self, seconds: float) -> None:
        """Ask for a sign of life again and again; raises NoAnswer when there was none for so long.

        Silence is counted in rounds and not by the clock, so that the process is not blamed for a pause of ours.
        """
        assert self._lost is not None
        rounds, missed = 4, 0
        while not self._lost.done() and missed < rounds:
            self.send({"kind": "ping"})
            heard = self._num_heard
            await asyncio.wait({self._lost}, timeout=seconds / rounds)
            missed = 0 if self._num_heard > heard else missed + 1
        raise NoAnswer(f"no sign of life for {seconds:g} s" if missed == rounds else self._lost.result())

    # ---- one question at a time

    async def ask(self, head: Mapping[str, Any], arrays: Arrays | None = None, seconds: float = START_SECONDS) -> Frame:
        """The answer to one question; after NoAnswer, or a cancellation, the process must be killed."""
        if self._lost is None:
            self.attach(self._take)
        self._num_asked += 1
        self._answer = asyncio.get_running_loop().create_future()
        self.send({**head, "id": self._num_asked}, arrays)
        try:
            frame: Frame = await self.wait_for(self._answer, seconds)
            return frame
        except NoAnswer as nothing:
            if str(nothing):
                raise
            how = await asyncio.to_thread(self.ended, _REAP_SECONDS)
            raise Died(f"its process died ({how})") from None

    def _take(self, frame: Frame) -> None:
        """What nobody asked for, or a second answer, is as bad as garbage."""
        number = frame.head.pop("id", None)
        if self._answer is None or self._answer.done() or number != self._num_asked:
            raise ValueError(f"a message of number {str(number)[:20]} where {self._num_asked} was asked")
        self._answer.set_result(frame)

    # ---- without a loop

    def tell(self, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Be done only when the process can read it, or is gone."""
        self._frames.send(head, arrays)
        self._frames.flush()

    def fileno(self) -> int:
        """Can be read from when there is something to hear."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def heard(self) -> list[Frame]:
        """What it has said since; NoAnswer when it can say no more."""
        try:
            return self._frames.arrived()
        except EOFError:
            raise NoAnswer("") from None
        except ValueError as error:
            raise NoAnswer(f"answered with something that is no message: {error}") from None

    # ---- its end

    def hang_up(self) -> None:
        """Let it end by itself as soon as it has nothing to do."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def terminate(self) -> None:
        """Have its keeper kill it and whatever it started; `end` waits until that is done."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def ended(self, seconds: float) -> str:
        """How it ended, if it does within so long."""
        try:
            return ending(self._process.wait(seconds))
        except subprocess.TimeoutExpired:
            return "it closed its pipe"

    async def kill(self) -> None:
        """End it and whatever it started, while the loop goes on."""
        self._frames.detach()
        await asyncio.to_thread(self.end, 0.0)

    def end(self, patience: float) -> str:
        """Kill it and whatever it started, within a bound; answers how it had ended and what it said last.

        `patience`: seconds in which it may still end by itself, where how it ended is worth knowing.
        """
        self._frames.detach()
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
        said = self.last_words()
        for kept in (self._process.stdin, self._process.stdout, self._words):
            if kept is not None:
                with suppress(OSError):
                    kept.close()
        return ("killed" if code is None else ending(code)) + (f"; it said last:\n{said}" if said else "")

    # ---- what it said beside the conversation

    def stacks(self, seconds: float = 1.0) -> str:
        """What its threads are doing, as its interpreter itself tells; from any thread."""
        before, until = self._num_said, time.monotonic() + seconds
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
            while self._num_said == before and time.monotonic() < until:
                time.sleep(0.01)
        time.sleep(0.01)  # the rest of it
        return self._said(before) or "does not answer SIGUSR1\n"

    def last_words(self) -> str:
        return "\n".join(self._said(max(0, self._num_said - _LAST_BYTES)).strip().splitlines()[-_LAST_LINES:])

    @property
    def _num_said(self) -> int:
        """Bytes."""
        return 0 if self._words is None or self._words.closed else os.fstat(self._words.fileno()).st_size

    def _said(self, start: int) -> str:
        if self._words is None or self._words.closed:
            return ""
        # not read(): the process writes where the position of the file is, which both share
        return os.pread(self._words.fileno(), self._num_said - start, start).decode(errors="replace")


def ending(code: int) -> str:
    """How a process ended, by the exit code of it or its keeper."""
    number = -code if code < 0 else code - KILLED
    return f"signal {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit code {code}"


@contextmanager
def _deaf() -> Iterator[None]:
    """What starts within keeps SIGUSR1 until it is ready for it; by default it would end the process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
