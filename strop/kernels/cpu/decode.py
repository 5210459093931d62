"""Bindings of `decode.c` (decode-step kernels) to tensors; the C file documents the memory layout."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from strop.kernels.cpu.build import LANES, library


class StepTokens(ctypes.Structure):
    """Packed tokens of one decode step, and the current layer."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("tokens", "query_heads", "key_heads", "size", "capacity")),
        *((name, ctypes.c_void_p) for name in ("rows", "positions", "heads", "keys", "values", "lenders", "shared")),
    )


class Decode:
    """Compiled functions with their signatures; all tensors are contiguous float32, rows and positions int64."""

    def __init__(self, compiled: ctypes.CDLL) -> None:
        number, pointer, real, integer = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float, ctypes.c_int
        step = ctypes.POINTER(StepTokens)
        self._add_norm, self._swiglu = compiled.add_norm, compiled.swiglu
        self._store, self._share, self._attend = compiled.store, compiled.share, compiled.attend
        self._add_norm.argtypes = (number, number, pointer, pointer, pointer, real, pointer)
        self._swiglu.argtypes = (number, number, pointer, pointer, integer)
        self._store.argtypes = (step, pointer, pointer, pointer, pointer, real)
        self._share.argtypes = (step, number, number, number)
        self._attend.argtypes = (step, real, number, pointer, pointer, integer)
        for function in (self._add_norm, self._swiglu, self._store, self._share, self._attend):
            function.restype = None

    def add_norm(self, residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, out: Tensor) -> Tensor:
        """Add `delta` to the residual [T, hidden] in place; out: its normalised state."""
        added = None if delta is None else delta.data_ptr()
        self._add_norm(*residual.shape, residual.data_ptr(), added, weight.data_ptr(), epsilon, out.data_ptr())
        return out

    def swiglu(self, gate_up: Tensor, out: Tensor) -> Tensor:
        """[T, 2F] -> out [T, F]."""
        self._swiglu(*out.shape, gate_up.data_ptr(), out.data_ptr(), torch.get_num_threads())
        return out

    def store(
        self,
        step: StepTokens,
        cosine: Tensor,
        sine: Tensor,
        query_norm: Tensor | None,
        key_norm: Tensor | None,
        epsilon: float,
    ) -> None:
        """Turn the step's heads [T, H + 2K, D] and store keys and values; cosine and sine [C, D / 2]."""
        norms = [None if norm is None else norm.data_ptr() for norm in (query_norm, key_norm)]
        self._store(step, cosine.data_ptr(), sine.data_ptr(), *norms, epsilon)

    def share(self, step: StepTokens, source: int, destination: int, length: int) -> None:
        """Let a row begin with the first keys of another."""
        self._share(step, source, destination, length)

    def attend(self, step: StepTokens, scale: float, window: int | None, out: Tensor) -> Tensor:
        """Of the queries that were stored: out [T, H * D]."""
        threads = torch.get_num_threads()
        scratch = torch.empty(threads, step.capacity + LANES)
        seen = step.capacity if window is None else window
        self._attend(step, scale, seen, out.data_ptr(), scratch.data_ptr(), threads)
        return out


def compiled_decode() -> Decode | None:
    """None where there is no compiler."""
    found = library("step")  # which includes them
    return None if found is None else Decode(found)
