"""Raise the walls around the process that calls this: limits, no privileges, Landlock where it is, seccomp."""

from __future__ import annotations

import ctypes
import enum
import os
import resource
import sys
from pathlib import Path

from strop.processes.box import landlock, seccomp

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 4, 38, 24
_CAPSET, _CAPABILITIES_3 = 126, 0x20080522
_MOST_FILES = 32
_BOUNDS_TRUNCATION = 3  # the version of Landlock; before, a file that may be read can be emptied by whoever owns it


class Wall(enum.Enum):
    """What stands between a program and the machine; seccomp stands in both."""

    # Landlock: the interpreter's own files may be read, and a folder of its own written. Of all others the name, size
    # and time can be asked for: let them not say what a program must not know
    FILES = "files"
    NO_FILES = "no files"  # no call that takes the name of a file, so that all modules must be there already


def best_wall() -> Wall | None:
    """The one that this machine can raise; None: none."""
    if sys.platform != "linux" or not seccomp.is_known() or not Path("/proc/sys/kernel/seccomp").is_dir():
        return None
    return wall_with(landlock.version())


def wall_with(version: int) -> Wall:
    """The wall for a kernel whose Landlock is of this version."""
    return Wall.FILES if version >= _BOUNDS_TRUNCATION else Wall.NO_FILES


def confine(wall: Wall, seconds: float, memory: int, readable: tuple[str, ...], folder: str) -> None:
    """From here on. `memory` is beyond what is taken now; `folder` may be written in, where it is not empty."""
    _limit(seconds, memory, files=bool(folder))
    libc = ctypes.CDLL(None, use_errno=True)
    _drop_capabilities(libc)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody of the same user looks into its memory
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    if wall is Wall.FILES:
        landlock.restrict(readable, (folder,) if folder else ())
    seccomp.restrict(may_read=wall is Wall.FILES, may_write=wall is Wall.FILES and bool(folder))


def _limit(seconds: float, memory: int, files: bool) -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    whole = int(seconds) + 1
    for what, most in (
        (resource.RLIMIT_CPU, whole),
        (resource.RLIMIT_AS, taken + memory),
        (resource.RLIMIT_FSIZE, memory if files else 0),
        (resource.RLIMIT_NOFILE, _MOST_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Even of root: what is read or written then is bounded by who owns it, and no limit can be raised again."""
    if os.geteuid() == 0:
        for number in range(64):
            if libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
                break  # there are no more
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    if libc.syscall(_CAPSET, ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())):
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")
