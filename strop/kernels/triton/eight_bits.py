"""`strop.kernels.eight_bits` in Triton: FP8 matrix products for Hopper GPUs.

Tensor cores compute each block of 128; blocks are summed in float32, times both scales, in ascending order. Tiles have
at least 64 rows, so that all use the same instruction: a row's result depends neither on the other rows nor on the tile
size.

For few rows most of such a tile is empty. There the product is transposed, so that weights fill the 64 rows of the
instruction, on GPUs where a test finds the same bits: two thirds of the instructions and a quarter of the barriers.
"""

from __future__ import annotations

from functools import cache

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
_FEW, _COLUMNS, _STAGES = 32, 64, 8  # rows at most, and of the program that they are multiplied by
_ALONE = 132  # programs of which each has a multiprocessor to itself: of more, one computes while another waits


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
    output = torch.empty(len(one.codes), len(other.codes), dtype=dtype, device=one.codes.device)
    if is_few(one, other) and is_same_turned(one.codes.device):
        multiply_few(one, other, bias, output)
    else:
        _multiply_many(one, other, bias, output)
    return output


def is_few(one: Eights, other: Eights) -> bool:
    """Whether `multiply_few` may be quicker; it takes two blocks at a time."""
    return len(one.codes) <= _FEW and triton.cdiv(len(other.codes), _COLUMNS) <= _ALONE and len(one.scales) % 2 == 0


@cache
def is_same_turned(device: torch.device) -> bool:
    """Whether `multiply_few` finds the bits that all other products have, of numbers of very different sizes.

    Products and the order of sums are the same; that an instruction adds alike from both sides is nowhere promised.
    """
    generator = torch.Generator(device).manual_seed(0)
    drawn = torch.randn(2, _FEW + 4 * _COLUMNS, 8 * BLOCK, generator=generator, device=device)
    state, weight = (drawn[0] * (2 * drawn[1]).exp2()).split([_FEW, 4 * _COLUMNS])
    held, _ = Eights.squares([len(weight)], weight.shape[1], device)
    encode_squares(weight, held)
    for count in (_FEW // 2, _FEW):
        given, (one, other) = encode(state[:count]), torch.empty(2, count, len(weight), device=device)
        multiply_few(given, held, None, one)
        _multiply_many(given, held, None, other)
        if not torch.equal(one, other):
            return False
    return True


def multiply_few(one: Eights, other: Eights, bias: Tensor | None, output: Tensor) -> None:
    count, width = output.shape
    _multiply_few[(triton.cdiv(width, _COLUMNS),)](
        *one[:2], *other[:2], bias, output, count, width, len(one.scales), one.codes.stride(0), other.codes.stride(0),
        one.scales.stride(0), other.scales.stride(0), ROWS=max(16, triton.next_power_of_2(count)), COLUMNS=_COLUMNS,
        STAGES=_STAGES, HAS_BIAS=bias is not None, IS_SHARED=other.share % _COLUMNS == 0, num_warps=4,
    )  # fmt: skip


def _multiply_many(one: Eights, other: Eights, bias: Tensor | None, output: Tensor) -> None:
    count, width = output.shape
    shape = tile_of(count, width)
    grid = (triton.cdiv(count, shape["ROWS"]) * triton.cdiv(width, shape["COLUMNS"]),)
    _multiply[grid](
        _tiles(one, shape["ROWS"]), one.scales, _tiles(other, shape["COLUMNS"]), other.scales, bias, output,
        count, width, len(one.scales), one.scales.stride(0), other.scales.stride(0),
        HAS_BIAS=bias is not None, IS_SHARED=other.share % shape["COLUMNS"] == 0, **shape,
    )  # fmt: skip


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


@triton.jit(do_not_specialize=["count", "one_scale_stride"])
def _multiply_few(
    one, one_scales, other, other_scales, bias, output, count, width, blocks, one_stride, other_stride,
    one_scale_stride, other_scale_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr, HAS_BIAS: tl.constexpr, IS_SHARED: tl.constexpr,
):  # fmt: skip
    """other @ one', the transpose of what is stored; blocks are an even number."""
    left = tl.program_id(0) * COLUMNS
    rows, columns, inner = tl.arange(0, ROWS), left + tl.arange(0, COLUMNS), tl.arange(0, _BLOCK)
    is_row, at = rows < count, tl.minimum(columns, width - 1)
    x = one + rows.to(tl.int64)[None, :] * one_stride + inner[:, None]
    y = other + at.to(tl.int64)[:, None] * other_stride + inner[None, :]
    x_scale, y_scale = one_scales + rows[None, :], other_scales + (left if IS_SHARED else at[:, None])
    total = tl.zeros([COLUMNS, ROWS], tl.float32)
    for _ in tl.range(0, blocks, 2, num_stages=STAGES):
        for _ in tl.static_range(2):  # as many bytes at a time as products of bfloat16 take
            found = tl.dot(tl.load(y, eviction_policy="evict_first"), tl.load(x, is_row[None, :], 0.0))
            scale = tl.load(x_scale, is_row[None, :], 0.0) * tl.load(y_scale)
            total = tl.fma(found, tl.broadcast_to(scale, [COLUMNS, ROWS]), total)
            x += _BLOCK
            y += _BLOCK
            x_scale += one_scale_stride
            y_scale += other_scale_stride
    if HAS_BIAS:
        total += tl.load(bias + at).to(tl.float32)[:, None]
    to = rows.to(tl.int64)[None, :] * width + columns[:, None]
    tl.store(output + to, total.to(output.dtype.element_ty), is_row[None, :] & (columns < width)[:, None])
