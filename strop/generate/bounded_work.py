"""Coroutine with a deadline for each of its steps between two awaits, so that one that blocks the event loop is ended.

A timer of the main thread raises in code that computes or sleeps without awaiting; elsewhere, and in a C extension that
never looks for signals, only a process of its own helps (`environments/isolation/subprocess.py`).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Generic, TypeVar

from strop.workers.untrusted_answers import TooLate

Result = TypeVar("Result")
_AGAIN = 1.0  # seconds until it raises again, in code that caught it
_LONGEST = 1e6  # seconds; a timer takes no more


class _Ended(BaseException):
    """Raised in code that blocks; no `except Exception` catches it."""


@dataclass
class Alarm:
    """Deadline of code that blocks the main thread; `TooLate` where it had to be ended."""

    seconds: float
    _is_armed: bool = field(default=False, init=False)

    def __enter__(self) -> None:
        if self.seconds > _LONGEST or threading.current_thread() is not threading.main_thread():
            return
        self._begun, self._before = time.monotonic(), signal.signal(signal.SIGALRM, self._end)
        self._is_armed = True
        self._outer = signal.setitimer(signal.ITIMER_REAL, self.seconds, _AGAIN)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._is_armed:
            return
        self._is_armed = False  # from here on the timer ends nothing
        left, interval = self._outer
        left = max(left - (time.monotonic() - self._begun), 1e-3) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, self._before)
        if kind is _Ended:
            raise TooLate(f"no answer within {self.seconds:g} s, and the run was blocked (Apart(env) avoids that)")

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._is_armed and frame is not None and frame.f_code.co_filename != __file__:  # not in this file
            raise _Ended


class Begun(Generic[Result]):
    """Coroutine run up to its first await; most environments never wait and need no deadline."""

    def __init__(self, work: Coroutine[Any, Any, Result], seconds: float = float("inf")) -> None:
        self._work, self._seconds = work, seconds
        self.is_done, self._is_told = False, False
        try:
            with Alarm(seconds):
                self._wish = work.send(None)  # the first future that it waits for
        except StopIteration as end:
            self.is_done, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, Result]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        if self._is_told:
            with Alarm(self._seconds):
                return self._work.send(value)
        self._is_told = True
        return self._wish

    def throw(self, *error: Any) -> Any:
        with Alarm(self._seconds):
            return self._work.throw(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)  # frames, for debuggers
