"""A thread that watches what a sandbox takes, and ends it at once where that is more than it may."""

from __future__ import annotations

import os
import re
import select
import signal
import threading
import time
from dataclasses import dataclass, field, replace

from strop.sandbox.execution import Ending, Ran
from strop.sandbox.resource_totals import Totals
from strop.sandbox.writable_folder import LentFolder

_SHORTEST, _LONGEST, _SHARE = 0.02, 0.2, 4  # seconds between two looks, which are so many times what one takes
_SETUP_SECONDS = 20.0  # in which a sandbox must stand; a machine may be busy
_DYING_SECONDS = 1.0  # in which a process that is no longer to be looked into is gone
_CHUNK = 1 << 16
_FIRST = re.compile(rb'"child-pid": *([0-9]+)[^0-9]')


@dataclass(eq=False)
class Overseer:
    """Watches from when a sandbox tells on `status` which process is its first, until it is released.

    It is no part of a loop that may be busy. A sandbox that it cannot look into is ended.
    """

    status: int
    memory: int
    lent: LentFolder | None
    _passed: Ending | None = field(default=None, init=False)
    _why: str = field(default="", init=False)  # it could not look
    _told: bytes = field(default=b"", init=False)
    _is_over: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Nothing of the sandbox is left."""
        self._is_over.set()
        self._thread.join()
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
        pause, until = _SHORTEST, time.monotonic() + _SETUP_SECONDS
        while not self._is_over.wait(pause):
            begun = time.monotonic()
            with Totals(first, self.memory, self.lent) as totals:
                if totals.stands():
                    self._passed = totals.passed()
                elif begun > until:
                    raise OSError("it has no processes of its own to list")
            if self._passed is not None:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return
            pause = min(max(_SHORTEST, _SHARE * (time.monotonic() - begun)), _LONGEST)
