"""Bindings of `linear.c` (matrix products) to contiguous float32 tensors."""

from __future__ import annotations

import ctypes
import platform
from functools import cache

import torch
from torch import Tensor

from strop.kernels.cpu.build import library
from strop.kernels.cpu.panels import packing, padded

_DEPTH = 256  # tokens that one sum spans, as in linear.c


class Linear:
    """Compiled functions with their signatures."""

    def __init__(self, compiled: ctypes.CDLL) -> None:
        self._functions, self.pack = compiled, packing(compiled)
        number, pointer, threads = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
        compiled.linear.argtypes = (*[number] * 3, *[pointer] * 4, threads)
        compiled.linear_gradient.argtypes = (*[number] * 3, *[pointer] * 4, threads)
        compiled.linear.restype = compiled.linear_gradient.restype = None

    def product(self, state: Tensor, panels: Tensor, columns: int, bias: Tensor | None = None) -> Tensor:
        """state [T, depth] -> [T, columns]."""
        _check(state.shape[1] * padded(columns) == panels.numel(), state)
        output = state.new_empty(len(state), columns)
        pointers = (state.data_ptr(), panels.data_ptr(), None if bias is None else bias.data_ptr(), output.data_ptr())
        self._functions.linear(*state.shape, columns, *pointers, torch.get_num_threads())
        return output

    def gradient(self, d_output: Tensor, state: Tensor) -> Tensor:
        """d_output [T, O], state [T, I] -> [O, I]."""
        (tokens, outer), inner = d_output.shape, state.shape[1]
        _check(tokens == len(state), d_output, state)
        found, scratch = state.new_empty(outer, inner), state.new_empty(min(_DEPTH, tokens), padded(inner))
        pointers = (each.data_ptr() for each in (d_output, state, found, scratch))
        self._functions.linear_gradient(tokens, outer, inner, *pointers, torch.get_num_threads())
        return found


def _check(fits: bool, *tensors: Tensor) -> None:
    """C reads what it is told to: other shapes and types would be read as what they are not."""
    if not fits or any(each.dtype != torch.float32 or not each.is_contiguous() for each in tensors):
        told = ", ".join(f"{tuple(each.shape)} {each.dtype}" for each in tensors)
        raise ValueError(f"products on a CPU need contiguous float32 of shapes that fit, got {told}")


@cache
def compiled() -> Linear | None:
    """None where there is no compiler, and where a library is quicker: other processors have units for matrices."""
    found = library("linear") if platform.machine() == "x86_64" else None
    return None if found is None else Linear(found)
