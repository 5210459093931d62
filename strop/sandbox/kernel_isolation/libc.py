"""Functions of the C library that Python lacks, and reads and writes of kernel files.

Kernel files are accessed by file descriptor: between fork and exec, Python's text streams cost a fifth of a sandbox's
start.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

_PAGE = 4096
_AFTER_FORK = ("unshare", "mount", "umount2", "syscall")


@cache
def libc() -> ctypes.CDLL:
    """Loaded once, with what is called between a fork and what follows it: there each page written to is copied."""
    found = ctypes.CDLL(None, use_errno=True)
    for name in _AFTER_FORK:
        getattr(found, name)
    return found


def told(path: str) -> str:
    """What the kernel says in one of its files, a page at a time."""
    handle, said = os.open(path, os.O_RDONLY | os.O_CLOEXEC), b""
    try:
        while heard := os.read(handle, _PAGE):
            said += heard
        return said.decode()
    finally:
        os.close(handle)


def tell(path: str, text: str) -> None:
    """One setting of the kernel's, in one piece."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def checked(result: int, what: str) -> int:
    """An error of the kernel as an exception that says what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
