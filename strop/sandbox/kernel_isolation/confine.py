"""Confinement of the calling process: resource limits, no privileges, Landlock where available, seccomp."""

from __future__ import annotations

import ctypes
import enum
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

from strop.sandbox.kernel_isolation import landlock, seccomp
from strop.sandbox.kernel_isolation.libc import checked, libc
from strop.sandbox.kernel_isolation.unprivileged_user import become, unused_user
from strop.sandbox.layout import HOME
from strop.sandbox.python import visible_files
from strop.sandbox.writable_folder import WritableFolder
from strop.workers.keeper import tie_to_parent

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CAPSET, _CAPABILITIES_3 = 126, 0x20080522
_MOST_FILES = 32
_BOUNDS_TRUNCATION = 3  # the version of Landlock; before, a file that may be read can be emptied by whoever owns it


class KernelIsolation(enum.Enum):
    """Mechanism that bounds file access; seccomp is part of both."""

    # a view of its own, and Landlock: the standard library may be read, and a folder of its own written
    FILES = "files"
    NO_FILES = "no files"  # no call that takes the name of a file, so that all modules must be there already


def best_isolation() -> KernelIsolation | None:
    """The one that this machine can raise; None: none."""
    if sys.platform != "linux" or not seccomp.is_known() or not Path("/proc/sys/kernel/seccomp").is_dir():
        return None
    return isolation_with(landlock.version(), visible_files.problem())


def weakness() -> str:
    """What the better isolation lacks on this machine, and what the weaker one means; empty with the better one."""
    if best_isolation() is not KernelIsolation.NO_FILES:
        return ""
    version = landlock.version()
    lacks = (
        f"Landlock {version or 'is absent'}, and version {_BOUNDS_TRUNCATION} is needed"
        if version < _BOUNDS_TRUNCATION
        else f"no mounts of one's own: {visible_files.problem()}"
    )
    return (
        f"programs of the model run behind seccomp alone ({lacks}): they open no file, so that they import only "
        "modules that are loaded already, and no folder can be writable for them"
    )


def isolation_with_warning() -> KernelIsolation | None:
    """The best one; where that is the weaker, it is said."""
    if told := weakness():
        warnings.warn(told, stacklevel=2)
    return best_isolation()


def isolation_with(version: int, problem: str = "") -> KernelIsolation:
    """The isolation for a kernel whose Landlock is of this version, and on which a view of its own has this problem."""
    return KernelIsolation.FILES if version >= _BOUNDS_TRUNCATION and not problem else KernelIsolation.NO_FILES


def confine(
    isolation: KernelIsolation, seconds: float, memory: int, readable: tuple[str, ...], writable: WritableFolder | None
) -> None:
    """From here on. `memory` is beyond what is taken now; what is writable may be written in."""
    _limit(seconds, memory, files=writable is not None)
    user, parent = unused_user(), os.getppid()
    if user is not None and writable is not None:
        writable.give(user)
    if isolation is KernelIsolation.FILES:
        visible_files.enter(writable)
    if user is not None:
        become(user)
        tie(parent)  # which was forgotten with who it was
    _drop_capabilities()
    # nobody of the same user looks into its memory; what it holds open of a folder must be counted
    libc().prctl(_PR_SET_DUMPABLE, int(writable is not None), 0, 0, 0)
    checked(libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if isolation is KernelIsolation.FILES:
        landlock.restrict(readable, () if writable is None else (HOME,))
    may_read = isolation is KernelIsolation.FILES
    seccomp.restrict(seccomp.computing(may_read, may_write=may_read and writable is not None))


def tie(parent: int) -> None:
    """End with the process that forked this one, even if it ended before this could be said."""
    tie_to_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


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


def _drop_capabilities() -> None:
    """Those of a namespace too: what is seen then is seen for good, and no limit can be raised again."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    checked(libc().syscall(_CAPSET, ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "capabilities")
