"""Batch-invariant matrix product: one order of summation for any number of rows, at memory speed for few rows.

A program reads some rows of the matrix from end to end and adds in one accumulator, as a library's product of many rows
does: the result has the same bits, whatever else is in the batch. (With fewer rows a library may split sums, which
rounds one of a hundred numbers differently and, a few layers on, all of them; told not to split, it is up to ten times
as slow for some shapes.)
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.triton.chain import capability, chained, follow, release
from strop.kernels.triton.swiglu import opened

FEW = 32  # rows: with more, a library's product is quicker
MOST = 512  # rows up to which a library is tried before it is used
_ROOM = 96 * 1024  # bytes that a multiprocessor of any GPU since 2020 has for a program
_MORE_ROOM, _SERVERS = 160 * 1024, ((8, 0), (9, 0), (10, 0))  # and one of these
_THIN = 256  # outputs of an adapter's inner product
_ENOUGH, _PROCESSORS = 96, 132  # programs that keep a GPU busy, and at most one on each of its multiprocessors
_TIMES, _SLOW = 4, 4.0  # that a product is timed, and times as long as reading at which it is slow
_LAUNCH, _SPEED = 0.015, 2e9  # milliseconds, and bytes in one of them: roughly, of a large GPU


def can_multiply(state: Tensor, weight: Tensor) -> bool:
    """Whether `product` takes state [T, I] and weight [O, I]."""
    is_narrow = state.is_cuda and state.dtype in (torch.bfloat16, torch.float16) and capability(state.device) >= (8, 0)
    return is_narrow and state.shape[1] % 64 == 0 and (len(weight) % 64 == 0 or len(weight) <= _THIN)


def library_serves(rows: int, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether a library's product of so many rows adds in this order, and in little more than reading takes."""
    generator = torch.Generator(weight.device).manual_seed(0)
    state = torch.randn(rows, weight.shape[1], generator=generator, device=weight.device).to(weight.dtype)
    if not torch.equal(F.linear(state, weight, bias), product(state, weight, bias)):
        return False
    start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
    start.record()
    for _ in range(_TIMES):
        F.linear(state, weight, bias)
    end.record()
    end.synchronize()
    return bool(start.elapsed_time(end) / _TIMES < _SLOW * (_LAUNCH + weight.nbytes / _SPEED))


def product(state: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype | None = None) -> Tensor:
    """state [T, I], weight [O, I], bias [O] -> [T, O], rounded once."""
    output = torch.empty(len(state), len(weight), dtype=dtype or state.dtype, device=state.device)
    _launch(state, weight, bias, output, {"IS_GATED": False, "IS_GELU": False})
    return output


def gated(state: Tensor, weight: Tensor, bias: Tensor | None, is_gelu: bool = False) -> Tensor:
    """state [T, I], weight [2F, I] -> [T, F]: `swiglu.forward` of the product."""
    output = torch.empty(len(state), len(weight) // 2, dtype=state.dtype, device=state.device)
    _launch(state, weight, bias, output, {"IS_GATED": True, "IS_GELU": is_gelu})
    return output


def tile_of(rows: int, outer: int, inner: int, device: torch.device) -> dict[str, int]:
    """ROWS of the state and rows of the matrix of one program, and how much of them it takes in at a time.

    Wide programs ask for the same numbers less often, narrow ones are more. What is on its way at a time must be much,
    the more the fewer programs there are.
    """
    high, columns, step = _shape(rows, outer, inner)
    is_alone = triton.cdiv(rows, high) * triton.cdiv(outer, columns) <= _PROCESSORS  # on its multiprocessor
    room = _ROOM if is_alone else _ROOM * 2 // 3
    if outer > _THIN and (rows > FEW or (is_alone and columns == 64)):
        room = _MORE_ROOM if device.type == "cuda" and capability(device) in _SERVERS else _ROOM
    stages, warps = room // (2 * step * (columns + high)), 8 if columns * high * step >= 64 * 64 * 128 else 4
    return {"ROWS": high, "COLUMNS": columns, "INNER": step, "num_stages": stages, "num_warps": warps}


def _shape(rows: int, outer: int, inner: int) -> tuple[int, int, int]:
    if rows <= FEW:
        high = max(16, triton.next_power_of_2(rows))
        return (high, 16, 256) if outer < 3072 and inner % 256 == 0 else (high, 64, 128 if inner % 128 == 0 else 64)
    if outer <= _THIN:
        return (64, 32 if outer % 32 == 0 else 16, 64)
    for high, columns in ((128, 128), (128, 64)):
        if outer % columns == 0 and triton.cdiv(rows, high) * (outer // columns) >= _ENOUGH:
            return (high, columns, 64)
    return (64, 64, 128 if inner % 128 == 0 else 64)


def _launch(state: Tensor, weight: Tensor, bias: Tensor | None, output: Tensor, kind: dict[str, Any]) -> None:
    (count, size), wide, state = state.shape, len(weight), state.contiguous()
    tile = tile_of(count, wide, size, state.device)
    tiles = triton.cdiv(count, tile["ROWS"]), triton.cdiv(wide, tile["COLUMNS"])
    _product[(tiles[0] * tiles[1],)](
        state, weight, bias, output, count, output.shape[1], size, weight.stride(0), weight.stride(1), *tiles,
        HAS_BIAS=bias is not None, HAS_TAIL=wide % tile["COLUMNS"] != 0, IS_HIGH=tiles[0] > tiles[1],
        **kind, **tile, **chained(count, state.device),
    )  # fmt: skip


@triton.jit
def summed(
    state, weight, row, column, count, size, stride, step,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """weight[column] @ state[row]', in one accumulator: [COLUMNS, ROWS]."""
    inner = tl.arange(0, INNER)
    left = weight + column.to(tl.int64)[:, None] * stride + inner.to(tl.int64)[None, :] * step
    right = state + row.to(tl.int64)[None, :] * size + inner[:, None]
    exists = (row < count)[None, :]
    found = tl.zeros([COLUMNS, ROWS], tl.float32)
    for _ in range(0, size, INNER):
        read = tl.load(left, eviction_policy="evict_first")
        found = tl.dot(read, tl.load(right, exists, 0.0), found, input_precision="ieee")
        left += INNER * step
        right += INNER
    return found


@triton.jit(do_not_specialize=["count", "high", "wide"])
def _product(
    state, weight, bias, output, count, outer, size, stride, step, high, wide,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_TAIL: tl.constexpr,
    IS_HIGH: tl.constexpr, IS_GATED: tl.constexpr, IS_GELU: tl.constexpr, IS_CHAINED: tl.constexpr,
):  # fmt: skip
    follow(IS_CHAINED)
    program, place = tl.program_id(0), tl.arange(0, COLUMNS)
    top, tile = program % high, program // high  # neighbours read the same: of the matrix,
    if IS_HIGH:
        top, tile = program // wide, program % wide  # or of the state
    row = top * ROWS + tl.arange(0, ROWS)
    WIDTH: tl.constexpr = COLUMNS // 2 if IS_GATED else COLUMNS  # gates in the upper half of a tile, ups below them
    column = tile * WIDTH + place % WIDTH + place // WIDTH * outer
    if HAS_TAIL:
        column = tl.minimum(column, outer - 1)
    found = summed(state, weight, row, column, count, size, stride, step, ROWS, COLUMNS, INNER)
    release(IS_CHAINED)
    if HAS_BIAS:
        found += tl.load(bias + column).to(tl.float32)[:, None]
    kind = output.dtype.element_ty
    to, exists = output + row.to(tl.int64)[None, :] * outer, (row < count)[None, :]
    if IS_GATED:
        rounded = found.to(kind).to(tl.float32)
        gate, up = tl.split(tl.permute(tl.reshape(rounded, [2, WIDTH, ROWS]), [1, 2, 0]))
        own = tile * WIDTH + tl.arange(0, WIDTH)
        tl.store(to + own[:, None], (opened(gate, kind, IS_GELU) * up).to(kind), exists)
    else:
        tl.store(to + column[:, None], found.to(kind), exists)  # the last of a tail more than once, and alike
