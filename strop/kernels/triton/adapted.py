"""`strop.kernels.adapted.adapted` of few rows: an adapter costs one small kernel more, not three.

x A' and x W' are summed by programs of one launch, side by side; what follows (B, scale, bias, the three roundings,
and the activation behind gate and up) is the second kernel's.
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


def adapted(
    state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter, is_gated: bool = False, is_gelu: bool = False
) -> Tensor:
    """state [T, I], weight [O, I], bias [O] -> [T, O]; gated: `swiglu` of that, [T, O / 2]."""
    count, size = state.shape
    ranks, wide = len(adapter.down), len(weight)
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
        OUTER=outer, WIDE=wide, RANKS=ranks, PADDED=max(16, triton.next_power_of_2(ranks)), ROWS=tile["ROWS"],
        COLUMNS=_COLUMNS, HAS_BIAS=bias is not None, IS_GATED=is_gated, IS_GELU=is_gelu, num_warps=4, **more,
    )  # fmt: skip
    return output


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


@triton.jit
def _whole(
    inner, sums, up, bias, column, row, rank, scale, exists,
    WIDE: tl.constexpr, RANKS: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """What the layer and its adapter give at these outputs [ROWS, COLUMNS], rounded."""
    kind = inner.dtype
    is_there = (column < WIDE)[None, :] & (rank < RANKS)[:, None]
    right = tl.load(up + column.to(tl.int64)[None, :] * RANKS + rank[:, None], is_there, 0.0)
    beside = tl.dot(inner, right, input_precision="ieee") * scale
    if HAS_BIAS:
        beside += tl.load(bias + column, column < WIDE, 0.0).to(tl.float32)[None, :]
    total = tl.load(sums + row[:, None] * WIDE + column[None, :], exists, 0.0)
    return (beside.to(kind).to(tl.float32) + total).to(kind)
