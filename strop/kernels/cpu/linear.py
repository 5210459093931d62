"""The functions of `linear.c` over tensors, all of them contiguous float32; see there for what they compute."""

from __future__ import annotations

import ctypes
import platform
from functools import cache

import torch
from torch import Tensor

from strop.kernels.cpu.build import library

_PANEL, _DEPTH = 32, 256  # columns of the widest panel, as in products.h, and tokens that one sum spans


class Linear:
    """Compiled functions with their signatures."""

    def __init__(self, compiled: ctypes.CDLL) -> None:
        number, pointer, threads = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
        self._functions = compiled
        compiled.pack.argtypes = (number, number, pointer, number, number, pointer, threads)
        compiled.linear.argtypes = (*[number] * 3, *[pointer] * 4, threads)
        compiled.linear_gradient.argtypes = (*[number] * 3, *[pointer] * 4, threads)
        for function in (compiled.pack, compiled.linear, compiled.linear_gradient):
            function.restype = None

    def pack(self, weight: Tensor, panels: Tensor) -> None:
        """weight [columns, depth], however it lies, into the room that `panels_for` made."""
        (columns, depth), (column, row), threads = weight.shape, weight.stride(), torch.get_num_threads()
        self._functions.pack(depth, columns, weight.data_ptr(), row, column, panels.data_ptr(), threads)

    def product(self, state: Tensor, panels: Tensor, columns: int, bias: Tensor | None = None) -> Tensor:
        """state [T, depth] -> [T, columns]."""
        output = state.new_empty(len(state), columns)
        pointers = (state.data_ptr(), panels.data_ptr(), None if bias is None else bias.data_ptr(), output.data_ptr())
        self._functions.linear(*state.shape, columns, *pointers, torch.get_num_threads())
        return output

    def gradient(self, d_output: Tensor, state: Tensor) -> Tensor:
        """d_output [T, O], state [T, I] -> [O, I]."""
        (tokens, outer), inner = d_output.shape, state.shape[1]
        found, scratch = state.new_empty(outer, inner), state.new_empty(min(_DEPTH, tokens), _padded(inner))
        pointers = (each.data_ptr() for each in (d_output, state, found, scratch))
        self._functions.linear_gradient(tokens, outer, inner, *pointers, torch.get_num_threads())
        return found


def panels_for(columns: int, depth: int) -> Tensor:
    """Room for a weight [columns, depth]."""
    return torch.empty(_padded(columns), depth)


def _padded(columns: int) -> int:
    return -(-columns // _PANEL) * _PANEL


@cache
def compiled() -> Linear | None:
    """None where there is no compiler, and where a library is quicker: other processors have units for matrices."""
    found = library("linear") if platform.machine() == "x86_64" else None
    return None if found is None else Linear(found)
