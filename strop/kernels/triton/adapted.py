"""`strop.kernels.adapted` in Triton: LoRA products, with a fused kernel for few rows.

For few rows a LoRA layer costs one small kernel more than a plain one: the first launch computes x A' and x W', the
second the rest (B, scale, bias, the three roundings, and the activation of gate and up). Both paths round alike, unlike
a library product that accumulates into an existing result.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.adapted import Adapter
from strop.kernels.triton.chain import chained, follow, release
from strop.kernels.triton.in_order import summed, tile_of
from strop.kernels.triton.swiglu import opened

_RANKS = 16  # of A that one program sums: no fewer fit a matrix unit
_COLUMNS = 64  # outputs of one program of the second kernel
_NUMBERS = 64 * 128  # of x A' that a program of `add` has at once


def adapted(
    state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter, is_gated: bool = False, is_gelu: bool = False
) -> Tensor:
    """state [T, I], weight [O, I], bias [O] -> [T, O]; gated: `swiglu` of that, [T, O / 2]."""
    count, size = state.shape
    ranks, wide = len(adapter.down), len(weight)
    padded = _padded(ranks)
    more = chained(count, state.device)
    middle = torch.empty(count, ranks, dtype=state.dtype, device=state.device)
    sums = torch.empty(count, wide, dtype=torch.float32, device=state.device)
    tile, thin = tile_of(count, wide, size, state.device), triton.cdiv(ranks, _RANKS)
    _sums[(thin + wide // tile["COLUMNS"],)](
        state, adapter.down, weight, middle, sums, count, size, weight.stride(0), weight.stride(1), thin,
        RANKS=ranks, TOGETHER=_RANKS, WIDE=wide, **tile, **more,
    )  # fmt: skip
    outer = wide // 2 if is_gated else wide
    output = torch.empty(count, outer, dtype=state.dtype, device=state.device)
    _finish[(triton.cdiv(outer, _COLUMNS),)](
        middle, sums, adapter.up, bias, output, count, adapter.scale,
        OUTER=outer, WIDE=wide, RANKS=ranks, PADDED=padded, ROWS=tile["ROWS"],
        COLUMNS=_COLUMNS, HAS_BIAS=bias is not None, IS_GATED=is_gated, IS_GELU=is_gelu, num_warps=4, **more,
    )  # fmt: skip
    return output


def add(output: Tensor, middle: Tensor, up: Tensor, scale: float) -> Tensor:
    """middle [T, R], up [O, R]: scale * middle @ up', rounded, is added to output [T, O]."""
    (count, ranks), outer = middle.shape, len(up)
    padded = _padded(ranks)
    rows = max(16, min(128, _NUMBERS // padded))
    _add[(triton.cdiv(outer, _COLUMNS), triton.cdiv(count, rows))](
        output, middle, up, count, scale, OUTER=outer, RANKS=ranks, PADDED=padded, ROWS=rows, COLUMNS=_COLUMNS,
        num_warps=4,
    )  # fmt: skip
    return output


def _padded(ranks: int) -> int:
    return max(16, int(triton.next_power_of_2(ranks)))


@triton.jit(do_not_specialize=["count"])
def _sums(
    state, down, weight, middle, sums, count, size, stride, step, thin,
    RANKS: tl.constexpr, TOGETHER: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, INNER: tl.constexpr, IS_CHAINED: tl.constexpr,
):  # fmt: skip
    follow(IS_CHAINED)
    program = tl.program_id(0)
    row = tl.arange(0, ROWS)
    exists = (row < count)[None, :]
    if program < thin:  # they are the first: whoever waits for few programs waits least
        rank = program * TOGETHER + tl.arange(0, TOGETHER)
        at = tl.minimum(rank, RANKS - 1)
        inner = summed(state, down, row, at, count, size, size, 1, ROWS, TOGETHER, INNER)
        release(IS_CHAINED)
        kept = exists & (rank < RANKS)[:, None]
        tl.store(middle + row[None, :] * RANKS + rank[:, None], inner.to(middle.dtype.element_ty), kept)
    else:
        column = (program - thin) * COLUMNS + tl.arange(0, COLUMNS)
        found = summed(state, weight, row, column, count, size, stride, step, ROWS, COLUMNS, INNER)
        release(IS_CHAINED)
        tl.store(sums + row[None, :] * WIDE + column[:, None], found, exists)


@triton.jit(do_not_specialize=["count"])
def _finish(
    middle, sums, up, bias, output, count, scale,
    OUTER: tl.constexpr, WIDE: tl.constexpr, RANKS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, HAS_BIAS: tl.constexpr, IS_GATED: tl.constexpr, IS_GELU: tl.constexpr,
    IS_CHAINED: tl.constexpr,
):  # fmt: skip
    release(IS_CHAINED)
    follow(IS_CHAINED)
    column, row, rank = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.arange(0, ROWS), tl.arange(0, PADDED)
    exists = (row < count)[:, None] & (column < OUTER)[None, :]
    known = (row < count)[:, None] & (rank < RANKS)[None, :]
    inner = tl.load(middle + row[:, None] * RANKS + rank[None, :], known, 0.0)
    found = _whole(inner, sums, up, bias, column, row, rank, scale, exists, WIDE, RANKS, HAS_BIAS)
    if IS_GATED:
        kind = output.dtype.element_ty
        other = _whole(inner, sums, up, bias, column + OUTER, row, rank, scale, exists, WIDE, RANKS, HAS_BIAS)
        found = (opened(found.to(tl.float32), kind, IS_GELU) * other.to(tl.float32)).to(kind)
    tl.store(output + row[:, None] * OUTER + column[None, :], found, exists)


@triton.jit(do_not_specialize=["count"])
def _add(
    output, middle, up, count, scale,
    OUTER: tl.constexpr, RANKS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    column, rank = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.arange(0, PADDED)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    to, at = output + row.to(tl.int64)[:, None] * OUTER + column[None, :], row.to(tl.int64)[:, None] * RANKS
    exists = (row < count)[:, None] & (column < OUTER)[None, :]
    inner = tl.load(middle + at + rank[None, :], (row < count)[:, None] & (rank < RANKS)[None, :], 0.0)
    base = tl.load(to, exists, 0.0)
    tl.store(to, _added(base, inner, up, column, rank, scale, OUTER, RANKS), exists)


@triton.jit
def _whole(
    inner, sums, up, bias, column, row, rank, scale, exists,
    WIDE: tl.constexpr, RANKS: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """What the layer and its adapter give at these outputs [ROWS, COLUMNS], rounded."""
    base = tl.load(sums + row[:, None] * WIDE + column[None, :], exists, 0.0)
    if HAS_BIAS:
        base += tl.load(bias + column, column < WIDE, 0.0).to(tl.float32)[None, :]
    return _added(base.to(inner.dtype), inner, up, column, rank, scale, WIDE, RANKS)


@triton.jit
def _added(base, inner, up, column, rank, scale, WIDE: tl.constexpr, RANKS: tl.constexpr):
    """base [ROWS, COLUMNS] and what the adapter adds there."""
    is_there = (column < WIDE)[None, :] & (rank < RANKS)[:, None]
    right = tl.load(up + column.to(tl.int64)[None, :] * RANKS + rank[:, None], is_there, 0.0)
    beside = (tl.dot(inner, right, input_precision="ieee") * scale).to(inner.dtype)
    return (base.to(tl.float32) + beside.to(tl.float32)).to(inner.dtype)
