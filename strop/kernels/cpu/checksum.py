"""The function of `checksum.c` over a tensor; see there for what it computes."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from torch import Tensor

from strop.kernels.cpu.build import library


@cache
def compiled() -> Any:
    """None where there is no compiler."""
    found = library("checksum")
    if found is None:
        return None
    found.checksum.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    found.checksum.restype = ctypes.c_int64
    return found.checksum


def checksum(bits: Tensor, factors: Tensor) -> int | None:
    """Of contiguous bits [rows, columns] in 4-byte elements, with the columns' factors [columns]; None: not here."""
    is_plain = bits.element_size() == 4 and bits.is_contiguous() and not bits.is_cuda
    function = compiled() if is_plain else None
    return None if function is None else int(function(*bits.shape, bits.data_ptr(), factors.data_ptr()))
