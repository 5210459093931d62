"""Watchdog threads of sandboxes: a sandbox that exceeds its limits is killed at once.

The first check comes one interval after the start, so that a short program needs no thread.
"""

from __future__ import annotations

import os
import re
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from strop.sandbox.execution import Ending, Ran
from strop.sandbox.resource_totals import Totals
from strop.sandbox.writable_folder import WritableFolder

_SHORTEST, _LONGEST, _SHARE = 0.02, 0.2, 4  # seconds between two looks, which are so many times what one takes
_FIRST_LOOK = 0.03  # seconds after the start; a sandbox stands after some 0.01
_SETUP_SECONDS = 20.0  # in which a sandbox must stand; a machine may be busy
_DYING_SECONDS = 1.0  # in which a process that is no longer to be looked into is gone
_CHUNK = 1 << 16
_FIRST = re.compile(rb'"child-pid": *([0-9]+)[^0-9]')


@dataclass(eq=False)
class Overseer:
    """Watchdog of a sandbox whose first process is reported on `status`, until it is released.

    It does not depend on the event loop. A sandbox that it cannot inspect is killed, with `kill` where inspection is
    impossible.
    """

    status: int
    memory: int
    writable: WritableFolder | None
    kill: Callable[[], None]
    _passed: Ending | None = field(default=None, init=False)
    _why: str = field(default="", init=False)  # it could not look
    _told: bytes = field(default=b"", init=False)
    _is_over: threading.Event = field(default_factory=threading.Event, init=False)

    _beginning: threading.Lock = field(default_factory=threading.Lock, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _alarm(os.getpid()).ring(self)

    def begin(self) -> None:
        """Watch from now on, unless nothing of the sandbox is left."""
        with self._beginning:
            if self._is_over.is_set():
                return
            thread = threading.Thread(target=self._watch, daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError as error:  # there may be no more threads
                self._why = str(error)
                self.kill()

    def release(self) -> None:
        """Nothing of the sandbox is left."""
        self._is_over.set()
        _alarm(os.getpid()).forget(self)
        with self._beginning:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._told += os.read(self.status, _CHUNK)
        os.close(self.status)

    def judged(self, ran: Ran) -> Ran:
        """What came of it, by whether it could begin and which total it passed."""
        if self._why:
            return replace(ran, ending=Ending.SETUP, stderr=f"the sandbox cannot be watched: {self._why}")
        if self._passed is not None:
            return replace(ran, ending=self._passed)
        is_run = ran.ending is not Ending.FINISHED or b"exit-code" in self._told
        return ran if is_run else replace(ran, ending=Ending.SETUP)

    def _watch(self) -> None:
        while not (found := _FIRST.search(self._told)):  # it may come in pieces
            heard = os.read(self.status, _CHUNK)
            if not heard:
                return
            self._told += heard
        try:
            handle = os.pidfd_open(int(found[1]))
        except ProcessLookupError:
            return
        try:
            self._look(int(found[1]), handle)
        except Exception as error:
            if not select.select([handle], [], [], _DYING_SECONDS)[0]:  # it lives, and is not known
                self._why = f"{type(error).__name__}: {error}"
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)

    def _look(self, first: int, handle: int) -> None:
        pause, until = 0.0, time.monotonic() + _SETUP_SECONDS
        while not self._is_over.wait(pause):
            begun = time.monotonic()
            with Totals(first, self.memory, self.writable) as totals:
                if totals.stands():
                    self._passed = totals.passed()
                elif begun > until:
                    raise OSError("it has no processes of its own to list")
            if self._passed is not None:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return
            pause = min(max(_SHORTEST, _SHARE * (time.monotonic() - begun)), _LONGEST)


@dataclass(eq=False)
class _Alarm:
    """Rings for each sandbox `_FIRST_LOOK` after it was started; all it does then is to begin a thread for it."""

    _due: dict[Overseer, float] = field(default_factory=dict, init=False)  # all wait as long, so the first is next
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)

    def __post_init__(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def ring(self, overseer: Overseer) -> None:
        with self._changed:
            self._due[overseer] = time.monotonic() + _FIRST_LOOK
            if len(self._due) == 1:
                self._changed.notify()

    def forget(self, overseer: Overseer) -> None:
        """It has begun, or never will."""
        with self._changed:
            self._due.pop(overseer, None)

    def _run(self) -> None:
        while True:
            self._next().begin()  # with no lock held: a thread may take its time to start

    def _next(self) -> Overseer:
        with self._changed:
            while True:
                overseer, due = next(iter(self._due.items()), (None, 0.0))
                if overseer is None:
                    self._changed.wait()
                elif (left := due - time.monotonic()) > 0:
                    self._changed.wait(left)
                else:
                    del self._due[overseer]
                    return overseer


@cache
def _alarm(process: int) -> _Alarm:
    """That of this process: a fork has no thread of its parent's."""
    return _Alarm()
