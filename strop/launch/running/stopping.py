"""Stop signals (Ctrl-C, SIGTERM, closed terminal): the first one ends the run after the current step, saved; the second
at once.

A thread waits for the signals, because the event loop is blocked while the trainer computes in it or something hangs.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from strop.observe.live.status_file import STOP
from strop.run_state import Progress

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: its terminal is gone


@contextmanager
def gentle_stop(progress: Progress) -> Iterator[None]:
    """Within it, signals stop the current task as said above."""
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    assert current is not None

    def interrupt() -> None:
        if progress.is_stopping:
            progress.stages.enter(STOP, "stops at once")  # what then still hangs is ended by the status thread
            loop.call_soon_threadsafe(current.cancel)
        else:
            progress.is_stopping = True
            with suppress(OSError):
                print("\nfinishing this step and saving; press Ctrl-C again to stop at once", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    with _heard(interrupt):
        yield


@contextmanager
def _heard(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` in a thread for every signal; the interpreter passes their numbers on whatever it is doing."""
    hearing, telling = socket.socketpair()
    telling.setblocking(False)

    def hear() -> None:
        while numbers := hearing.recv(64):
            for number in numbers:
                if number in _SIGNALS:
                    interrupt()

    thread = threading.Thread(target=hear, name="signals", daemon=True)
    thread.start()
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.signal(number, _nothing) for number in heeded}
    descriptor = signal.set_wakeup_fd(telling.fileno())
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        telling.close()
        thread.join()
        hearing.close()


def _nothing(number: int, frame: FrameType | None) -> None:
    """Only a signal with a handler is passed on."""
