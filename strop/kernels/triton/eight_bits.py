"""`strop.kernels.eight_bits` in Triton, for GPUs of the Hopper generation.

What a block of 128 adds is found by the tensor cores and summed in float32, times both scales, blocks ascending. Tiles
have at least 64 rows, so that one kind of instruction finds them all: what a row comes to depends neither on the other
rows nor on the size of a tile.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from strop.kernels.eight_bits import BLOCK, HIGHEST, LEAST, Eights
from strop.kernels.swiglu import CUBE, SLOPE

_BLOCK, _HIGHEST, _LEAST = tl.constexpr(BLOCK), tl.constexpr(HIGHEST), tl.constexpr(LEAST)
_SLOPE, _CUBE = tl.constexpr(SLOPE), tl.constexpr(CUBE)
_ROWS = 8  # whose numbers a program rounds together

_MANY = 2048  # rows of which tiles may be larger


def encode(matrix: Tensor) -> Eights:
    found = Eights.empty(len(matrix), matrix.shape[1], matrix.device)
    _encode_into(matrix, found, _ROWS, is_square=False)
    return found


def encode_squares(weight: Tensor, into: Eights) -> None:
    _encode_into(weight, into, BLOCK, is_square=True)


def _encode_into(matrix: Tensor, into: Eights, rows: int, is_square: bool) -> None:
    count, size = matrix.shape
    grid = (triton.cdiv(count, rows), len(into.scales))
    _encode[grid](
        matrix, *into[:2], count, size, *matrix.stride(), into.codes.stride(0), into.scales.stride(0),
        ROWS=rows, IS_SQUARE=is_square, num_warps=8 if is_square else 4,
    )  # fmt: skip


def encode_across(matrix: Tensor, is_held: bool) -> Eights:
    count, size = matrix.shape
    found = Eights.empty(size, count, matrix.device)
    grid = (len(found.scales), triton.cdiv(size, BLOCK))
    _encode_across[grid](
        matrix, *found[:2], count, size, matrix.stride(0), found.codes.stride(0), IS_HELD=is_held, num_warps=8
    )
    return found


def encode_swiglu(gate_up: Tensor, is_gelu: bool) -> Eights:
    count, size = len(gate_up), gate_up.shape[1] // 2
    found = Eights.empty(count, size, gate_up.device)
    grid = (triton.cdiv(count, _ROWS), len(found.scales))
    _encode_swiglu[grid](
        gate_up, *found[:2], count, found.codes.stride(0), SIZE=size, ROWS=_ROWS, IS_GELU=is_gelu, num_warps=4
    )
    return found


def multiply(one: Eights, other: Eights, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    count, width = len(one.codes), len(other.codes)
    output = torch.empty(count, width, dtype=dtype, device=one.codes.device)
    shape = tile_of(count, width)
    grid = (triton.cdiv(count, shape["ROWS"]) * triton.cdiv(width, shape["COLUMNS"]),)
    _multiply[grid](
        _tiles(one, shape["ROWS"]), one.scales, _tiles(other, shape["COLUMNS"]), other.scales, bias, output,
        count, width, len(one.scales), one.scales.stride(0), other.scales.stride(0),
        HAS_BIAS=bias is not None, IS_SHARED=other.share % shape["COLUMNS"] == 0, **shape,
    )  # fmt: skip
    return output


def tile_of(count: int, width: int) -> dict[str, int]:
    """Of so many rows and columns, and how its program runs: the quickest seen at 7 billion weights on an H200."""
    if count > _MANY:
        return {"ROWS": 128, "COLUMNS": 128, "num_warps": 8, "STAGES": 4}
    columns = 128 if triton.cdiv(count, 64) * triton.cdiv(width, 128) >= 100 else 64
    programs = triton.cdiv(count, 64) * triton.cdiv(width, columns)
    return {
        "ROWS": 64,
        "COLUMNS": columns,
        "num_warps": 4,
        "STAGES": 6 if programs <= 132 else 4 if programs < 500 else 3,
    }


def _tiles(matrix: Eights, rows: int) -> TensorDescriptor:
    """Its codes by so many rows of a block, zero beyond its last row."""
    return TensorDescriptor(matrix.codes, list(matrix.codes.shape), list(matrix.codes.stride()), [rows, BLOCK])


@triton.jit
def scale_of(highest):
    return tl.div_rn(_HIGHEST, tl.maximum(highest, _LEAST))


@triton.jit
def coded(x, scale, codes):
    """Of numbers that share a scale, in the codes' type."""
    return tl.clamp(x * scale, -_HIGHEST, _HIGHEST).to(codes.dtype.element_ty)


@triton.jit(do_not_specialize=["count", "scale_stride"])
def _encode(
    matrix, codes, scales, count, size, row_stride, column_stride, code_stride, scale_stride,
    ROWS: tl.constexpr, IS_SQUARE: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    block = tl.program_id(1)
    columns = block * _BLOCK + tl.arange(0, _BLOCK)
    is_row = rows < count
    at = rows.to(tl.int64)[:, None] * row_stride + columns.to(tl.int64)[None, :] * column_stride
    x = tl.load(matrix + at, is_row[:, None] & (columns < size)[None, :], 0.0).to(tl.float32)
    highest = tl.max(tl.abs(x), 1)
    if IS_SQUARE:
        highest = tl.max(highest, 0) + tl.zeros([ROWS], tl.float32)
    scale = scale_of(highest)
    held = coded(x, scale[:, None], codes)
    tl.store(codes + rows.to(tl.int64)[:, None] * code_stride + columns[None, :], held, is_row[:, None])
    tl.store(scales + block * scale_stride + rows, tl.div_rn(1.0, scale), is_row)


@triton.jit(do_not_specialize=["count"])
def _encode_across(matrix, codes, scales, count, size, row_stride, code_stride, IS_HELD: tl.constexpr):
    block = tl.program_id(0)
    rows = block * _BLOCK + tl.arange(0, _BLOCK)
    columns = tl.program_id(1) * _BLOCK + tl.arange(0, _BLOCK)
    is_column = columns < size
    at = rows.to(tl.int64)[:, None] * row_stride + columns[None, :]
    x = tl.load(matrix + at, (rows < count)[:, None] & is_column[None, :], 0.0).to(tl.float32)
    if IS_HELD:
        scale = scale_of(tl.max(tl.abs(x), 1))[:, None]
        x = coded(x, scale, codes).to(tl.float32) * tl.div_rn(1.0, scale)
    scale = scale_of(tl.max(tl.abs(x), 0))
    held = coded(x, scale[None, :], codes)
    tl.store(codes + columns.to(tl.int64)[:, None] * code_stride + rows[None, :], tl.trans(held), is_column[:, None])
    tl.store(scales + block * size + columns, tl.div_rn(1.0, scale), is_column)


@triton.jit(do_not_specialize=["count"])
def _encode_swiglu(
    gate_up, codes, scales, count, code_stride, SIZE: tl.constexpr, ROWS: tl.constexpr, IS_GELU: tl.constexpr
):
    """What `swiglu` gives, with its roundings, without a place for it."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    block = tl.program_id(1)
    columns = block * _BLOCK + tl.arange(0, _BLOCK)
    is_row = rows < count
    at = rows.to(tl.int64)[:, None] * (2 * SIZE) + columns[None, :]
    mask = is_row[:, None] & (columns < SIZE)[None, :]
    gate = tl.load(gate_up + at, mask, 0.0).to(tl.float32)
    up = tl.load(gate_up + at + SIZE, mask, 0.0).to(tl.float32)
    exponent = gate
    if IS_GELU:
        exponent = (gate + gate * gate * gate * _CUBE) * _SLOPE
    opened = (gate * tl.sigmoid(exponent)).to(gate_up.dtype.element_ty).to(tl.float32)
    x = (opened * up).to(gate_up.dtype.element_ty).to(tl.float32)
    scale = scale_of(tl.max(tl.abs(x), 1))
    held = coded(x, scale[:, None], codes)
    tl.store(codes + rows.to(tl.int64)[:, None] * code_stride + columns[None, :], held, is_row[:, None])
    tl.store(scales + block * count + rows, tl.div_rn(1.0, scale), is_row)


@triton.jit(do_not_specialize=["count", "one_scale_stride"])
def _multiply(
    one, one_scales, other, other_scales, bias, output, count, width, blocks, one_scale_stride, other_scale_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, HAS_BIAS: tl.constexpr, IS_SHARED: tl.constexpr,
):  # fmt: skip
    # neighbours read the same columns, which are the more; in groups of 8 rows so that those stay in the cache, too
    program, tall = tl.program_id(0), tl.cdiv(count, ROWS)
    across = 8 * tl.cdiv(width, COLUMNS)
    first = program // across * 8
    high = tl.minimum(tall - first, 8)
    top, left = (first + program % across % high) * ROWS, program % across // high * COLUMNS
    rows, columns = top + tl.arange(0, ROWS), left + tl.arange(0, COLUMNS)
    is_row, is_column = rows < count, columns < width
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    # told here, so that scales are fetched ahead like what they scale: each would be waited for otherwise
    for block in tl.range(0, blocks, num_stages=STAGES):
        x, y = one.load([top, block * _BLOCK]), other.load([left, block * _BLOCK])
        scale = tl.load(one_scales + block * one_scale_stride + rows, is_row, 0.0)[:, None]
        if IS_SHARED:
            scale = scale * tl.load(other_scales + block * other_scale_stride + left)
        else:
            scale = scale * tl.load(other_scales + block * other_scale_stride + columns, is_column, 0.0)[None, :]
        total = tl.fma(tl.dot(x, y.T), tl.broadcast_to(scale, [ROWS, COLUMNS]), total)
    if HAS_BIAS:
        total += tl.load(bias + columns, is_column, 0.0).to(tl.float32)[None, :]
    at = rows.to(tl.int64)[:, None] * width + columns[None, :]
    tl.store(output + at, total.to(output.dtype.element_ty), is_row[:, None] & is_column[None, :])
