"""Panel layout of weights for the C matrix products of `products.h`: [columns / PANEL, depth, PANEL]."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from strop.kernels.cpu.build import LANES

Pack: TypeAlias = Callable[[Tensor, Tensor], None]  # a weight, however it lies, and the room that `panels_for` made
_PANEL = 2 * LANES  # columns of the widest; narrower ones have room there, too


def padded(columns: int) -> int:
    return -(-columns // _PANEL) * _PANEL


def panels_for(weight: Tensor) -> Tensor:
    """Room for a weight [columns, depth]."""
    return weight.new_empty(padded(weight.shape[0]), weight.shape[1])


def packing(compiled: ctypes.CDLL) -> Pack:
    """`pack` of a library that was compiled with `products.h`."""
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    compiled.pack.argtypes = (number, number, pointer, number, number, pointer, ctypes.c_int)
    compiled.pack.restype = None

    def pack(weight: Tensor, panels: Tensor) -> None:
        (columns, depth), (column, row), threads = weight.shape, weight.stride(), torch.get_num_threads()
        compiled.pack(depth, columns, weight.data_ptr(), row, column, panels.data_ptr(), threads)

    return pack
