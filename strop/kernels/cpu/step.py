"""Bindings of `step.c` (a whole decode step) to tensors and page tables; the C file documents the memory layout."""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from torch import Tensor

from strop.kernels.cpu.build import library
from strop.kernels.cpu.panels import packing
from strop.types import IntArray

_number, _pointer, _real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float


class PackedLinear(ctypes.Structure):
    _fields_ = (("panels", _pointer), ("bias", _pointer))


class StepLayer(ctypes.Structure):
    _fields_ = (
        *((name, _pointer) for name in ("before_attention", "before_feed_forward", "query_norm", "key_norm")),
        *((name, PackedLinear) for name in ("query_key_value", "output", "gate_up", "down")),
        ("keys", _pointer),
        ("values", _pointer),
        ("window", _number),
        ("scale", _real),
    )


class StepModel(ctypes.Structure):
    _fields_ = (
        *((name, _number) for name in ("layers", "hidden", "inner", "query_heads", "key_heads", "size")),
        ("vocabulary", _number),
        ("capacity", _number),
        ("layer", ctypes.POINTER(StepLayer)),
        *((name, _pointer) for name in ("embedding", "norm", "cosine", "sine")),
        ("head", PackedLinear),
        ("epsilon", _real),
        ("threads", ctypes.c_int),
    )


class StepWork(ctypes.Structure):
    _fields_ = (
        ("count", _number),
        *((name, _pointer) for name in ("tokens", "rows", "positions", "lenders", "shared")),
        ("num_shares", _number),
        ("shares", _pointer),
    )


class StepTable(ctypes.Structure):
    _fields_ = (
        *((name, _number) for name in ("capacity", "version", "num_ends")),
        *((name, _pointer) for name in ("ends", "tokens", "versions", "logprobs", "length", "computed")),
        *((name, _pointer) for name in ("limit", "key", "temperature")),
    )


class Steps:
    """Compiled functions with their signatures, and their scratch memory."""

    def __init__(self, compiled: ctypes.CDLL) -> None:
        model, work, table = (ctypes.POINTER(each) for each in (StepModel, StepWork, StepTable))
        self._functions, self.pack = compiled, packing(compiled)
        compiled.room.argtypes = (model, _number)
        compiled.forward.argtypes = (model, work, _pointer, _pointer)
        compiled.append.argtypes = (model, table, _number, _pointer, _pointer, _pointer)
        compiled.write_rows.argtypes = (model, table, work, _number, *[_pointer] * 4)
        compiled.forward.restype = None
        compiled.room.restype = compiled.append.restype = compiled.write_rows.restype = _number
        self._scratch = torch.empty(0)

    def forward(self, model: StepModel, work: StepWork) -> Tensor:
        """Last hidden states [T, hidden] of packed tokens."""
        hidden = torch.empty(work.count, model.hidden)
        self._functions.forward(model, work, hidden.data_ptr(), self._room(model, work.count))
        return hidden

    def append(self, model: StepModel, table: StepTable, rows: IntArray, hidden: Tensor) -> int:
        """One more token for each row from its hidden state [N, hidden]: how many have logits that are not finite."""
        scratch = self._room(model, len(rows))
        return int(self._functions.append(model, table, len(rows), rows.ctypes.data, hidden.data_ptr(), scratch))

    def write(self, model: StepModel, table: StepTable, work: StepWork, steps: int) -> tuple[int, int]:
        """Up to `steps` tokens for each row: how many it were, and how many rows have logits that are not finite."""
        hidden, buffers = torch.empty(work.count, model.hidden), np.empty((2, work.count), np.int64)
        lost, scratch = ctypes.c_int64(0), self._room(model, work.count)
        done = self._functions.write_rows(
            model, table, work, steps, buffers.ctypes.data, hidden.data_ptr(), scratch, ctypes.byref(lost)
        )
        return int(done), lost.value

    def _room(self, model: StepModel, tokens: int) -> int:
        needed = int(self._functions.room(model, tokens))
        if len(self._scratch) < needed:
            self._scratch = torch.empty(needed)
        return self._scratch.data_ptr()


def compiled_steps() -> Steps | None:
    """None where there is no compiler."""
    found = library("step")
    return None if found is None else Steps(found)
