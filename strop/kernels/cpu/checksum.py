"""Binding of `checksum.c` to tensors; the C file documents the checksum."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor

from strop.kernels.cpu.build import library

_LEAST = 1 << 17  # elements: for fewer no other thread is woken


@cache
def compiled() -> Any:
    """None where there is no compiler."""
    found = library("checksum")
    if found is None:
        return None
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    found.checksum.argtypes = (number, number, pointer, number, number, ctypes.c_int)
    found.checksum.restype = number
    return found.checksum


def checksum(bits: Tensor) -> int | None:
    """Of 4-byte elements [rows, columns] whose neighbours in one of both ways are neighbours; None: not here."""
    is_plain = bits.element_size() == 4 and 1 in bits.stride() and not bits.is_cuda
    function = compiled() if is_plain else None
    if function is None:
        return None
    threads = torch.get_num_threads() if bits.numel() >= _LEAST else 1
    return int(function(*bits.shape, bits.data_ptr(), *bits.stride(), threads))
