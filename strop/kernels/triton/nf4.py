"""`strop.kernels.nf4` in Triton: each byte is read once, and both of its weights are written."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.nf4 import BLOCK, VALUES

_BYTES = 1024  # of one program
_VALUES = tl.constexpr(VALUES)


def unpack(codes: Tensor, scales: Tensor, into: Tensor) -> None:
    """codes [N / 2], scales [N / BLOCK] -> into [N]."""
    grid = (triton.cdiv(len(codes), _BYTES),)
    _unpack[grid](codes, scales, into, len(codes), OF_SCALE=BLOCK // 2, BYTES=_BYTES, num_warps=4)


@triton.jit
def _values():
    """The 16 of them [16]: chosen among once for a program, not once for a weight."""
    at = tl.arange(0, 16)
    found = at * 0.0
    for code in tl.static_range(16):
        found = tl.where(at == code, _VALUES[code], found)
    return found


@triton.jit
def _unpack(codes, scales, into, count, OF_SCALE: tl.constexpr, BYTES: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BYTES
    at = first + tl.arange(0, BYTES)
    both = tl.load(codes + at, at < count, 0).to(tl.int32)
    scale = tl.load(scales + at // OF_SCALE, at < count, 0.0)
    values = _values()
    upper, lower = scale * tl.gather(values, both >> 4, 0), scale * tl.gather(values, both & 15, 0)
    to = 2 * first + tl.arange(0, 2 * BYTES)
    tl.store(into + to, tl.interleave(upper, lower).to(into.dtype.element_ty), to < 2 * count)
