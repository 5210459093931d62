"""Supervisor of one process: when it ends, or the supervisor is told to stop, all its descendants end too.

On Linux it adopts orphaned descendants (sessions and double forks included), so that having no child proves that
nothing is left. It holds no pipe and runs no foreign code.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIGNALS = {signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1}
KILLED = 128  # exit codes above are this plus the number of the signal that ended the process


def fork_kept(scratch: str = "") -> None:
    """Return in a new process; the old one stays behind as its keeper and ends with its exit code.

    The folder `scratch` goes with them. SIGUSR1 is handed on, and stays blocked in the new process until it is ready.
    """
    tie_to_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before the fork: no signal may find the keeper unprepared
    child = os.fork()
    if child:
        _keep(child, scratch)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS - {signal.SIGUSR1})
    tie_to_parent(signal.SIGKILL)


def tie_to_parent(end: signal.Signals) -> None:
    """Get `end` when the parent dies, and adopt orphaned grandchildren (Linux)."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, end)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def has_children() -> bool:
    """Whether any child is still alive, once those that ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _keep(child: int, scratch: str) -> None:
    """Wait for the child's end or for SIGTERM, then leave nothing."""
    for descriptor in (0, 1):
        os.close(descriptor)  # the parent must see the pipes end when the child does
    code = 0
    while (heard := signal.sigwait(_SIGNALS)) != signal.SIGTERM:
        if heard == signal.SIGUSR1:
            os.kill(child, signal.SIGUSR1)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
    else:
        _kill(child)
    _kill_children()
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(code if code >= 0 else KILLED - code)


def _kill_children() -> None:
    """Kill until there is nobody to wait for; the children of a killed child become ours and are next."""
    with suppress(ChildProcessError):
        while True:
            for child in _children():
                _kill(child)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    """Living processes whose parent this is."""
    mine = str(os.getpid())
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent(entry) == mine]


def _parent(entry: Path) -> str:
    try:
        stat = (entry / "stat").read_text(errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[1]  # the name before the bracket may hold anything


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
