"""Landlock rules: the process can use only files below given folders, no TCP port, and no signals to other processes.

Uses the kernel's system calls directly: docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE, _IOCTL = (1 << n for n in (0, 1, 2, 3, 13, 14, 15))
_FILES_OF_1 = (1 << 13) - 1  # bits that the first version knows
_READ = _READ_FILE | _READ_DIR | _EXECUTE
_ALL_NET, _ALL_SCOPES = 0b11, 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Of the kernel's Landlock; 0: there is none."""
    found: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return max(found, 0)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Nothing but these folders from here on, for this process and all it starts; needs no_new_privs."""
    libc, known = ctypes.CDLL(None, use_errno=True), version()
    files = (
        _FILES_OF_1 | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0) | (_IOCTL if known >= 5 else 0)
    )
    wanted = _Ruleset(files, _ALL_NET if known >= 4 else 0, _ALL_SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    rules = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), 0))
    for folder in readable:
        _allow(libc, rules, folder, _READ)
    for folder in writable:
        _allow(libc, rules, folder, files & ~(_EXECUTE | _IOCTL))
    _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, folder: str, allowed: int) -> None:
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    rule = _Beneath(allowed, descriptor)
    _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0))
    os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
