"""The C library's own calls, for what Python has no name for."""

from __future__ import annotations

import ctypes
import os
from functools import cache


@cache
def libc() -> ctypes.CDLL:
    """Loaded once: between a fork and what follows it, nothing should be loaded."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """An error of the kernel as an exception that says what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
