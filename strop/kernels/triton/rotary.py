"""Turning queries and keys by their positions and back, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 4  # tokens a program looks at together
_COLUMNS = 256  # of one program that sums


def rotate(fused: Tensor, cosine: Tensor, sine: Tensor, count: int, size: int) -> None:
    """The first `count` heads of fused [T, W], in place."""
    tokens, width = fused.shape
    _rotate[(triton.cdiv(tokens, _ROWS),)](
        fused, cosine, sine, tokens, width,
        HEADS=count, HEADS_UP=triton.next_power_of_2(count), HALF=size // 2,
        HALF_UP=triton.next_power_of_2(size // 2), ROWS=_ROWS, num_warps=4,
    )  # fmt: skip


def rotate_back(
    d_query: Tensor,
    d_key: Tensor,
    d_value: Tensor,
    cosine: Tensor,
    sine: Tensor,
    order: Tensor | None,
    bounds: Tensor | None,
) -> Tensor:
    if order is not None and bounds is not None:
        d_key, d_value = (_summed(each.contiguous(), order, bounds) for each in (d_key, d_value))
    tokens, queries, size = d_query.shape
    keys = d_key.shape[1]
    d_fused = torch.empty(tokens, (queries + 2 * keys) * size, dtype=d_query.dtype, device=d_query.device)
    _rotate_back[(triton.cdiv(tokens, _ROWS),)](
        d_query, d_key, d_value, cosine, sine, d_fused, tokens,
        d_query.stride(0), d_query.stride(1), d_key.stride(0), d_key.stride(1), d_value.stride(0), d_value.stride(1),
        QUERIES=queries, QUERIES_UP=triton.next_power_of_2(queries), KEYS=keys, KEYS_UP=triton.next_power_of_2(keys),
        HALF=size // 2, HALF_UP=triton.next_power_of_2(size // 2), ROWS=_ROWS, num_warps=4,
    )  # fmt: skip
    return d_fused


def _summed(values: Tensor, order: Tensor, bounds: Tensor) -> Tensor:
    """Rows of the same token added in a fixed order: [N, K, D] -> [U, K, D]."""
    count, width = len(bounds) - 1, values.shape[1] * values.shape[2]
    total = torch.empty(count, *values.shape[1:], dtype=values.dtype, device=values.device)
    _sum[(count, triton.cdiv(width, _COLUMNS))](values, order, bounds, total, width, COLUMNS=_COLUMNS, num_warps=2)
    return total


@triton.jit
def _rotate(
    fused, cosine, sine, tokens, width,
    HEADS: tl.constexpr, HEADS_UP: tl.constexpr, HALF: tl.constexpr, HALF_UP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    half = tl.arange(0, HALF_UP)
    heads = tl.arange(0, HEADS_UP)
    angle = rows[:, None] * HALF + half[None, :]
    is_row = rows < tokens
    is_angle = is_row[:, None] & (half < HALF)[None, :]
    turn = tl.load(cosine + angle, is_angle, 0.0)[:, None, :]
    lift = tl.load(sine + angle, is_angle, 0.0)[:, None, :]
    at = rows.to(tl.int64)[:, None, None] * width + heads[None, :, None] * (2 * HALF) + half[None, None, :]
    mask = is_row[:, None, None] & (heads < HEADS)[None, :, None] & (half < HALF)[None, None, :]
    first = tl.load(fused + at, mask, 0.0).to(tl.float32)
    second = tl.load(fused + at + HALF, mask, 0.0).to(tl.float32)
    tl.store(fused + at, (first * turn - second * lift).to(fused.dtype.element_ty), mask)
    tl.store(fused + at + HALF, (second * turn + first * lift).to(fused.dtype.element_ty), mask)


@triton.jit
def _rotate_back(
    d_query, d_key, d_value, cosine, sine, d_fused, tokens,
    query_row, query_head, key_row, key_head, value_row, value_head,
    QUERIES: tl.constexpr, QUERIES_UP: tl.constexpr, KEYS: tl.constexpr, KEYS_UP: tl.constexpr,
    HALF: tl.constexpr, HALF_UP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    half = tl.arange(0, HALF_UP)
    angle = rows[:, None] * HALF + half[None, :]
    is_row = rows < tokens
    is_angle = is_row[:, None] & (half < HALF)[None, :]
    turn = tl.load(cosine + angle, is_angle, 0.0)[:, None, :]
    lift = -tl.load(sine + angle, is_angle, 0.0)[:, None, :]
    far = rows.to(tl.int64)[:, None, None]
    inner = half[None, None, :]
    width: tl.constexpr = (QUERIES + 2 * KEYS) * 2 * HALF
    kind = d_fused.dtype.element_ty

    heads = tl.arange(0, QUERIES_UP)
    mask = is_row[:, None, None] & (heads < QUERIES)[None, :, None] & (half < HALF)[None, None, :]
    at = d_query + far * query_row + heads[None, :, None] * query_head + inner
    to = d_fused + far * width + heads[None, :, None] * (2 * HALF) + inner
    first, second = tl.load(at, mask, 0.0).to(tl.float32), tl.load(at + HALF, mask, 0.0).to(tl.float32)
    tl.store(to, (first * turn - second * lift).to(kind), mask)
    tl.store(to + HALF, (second * turn + first * lift).to(kind), mask)

    heads = tl.arange(0, KEYS_UP)
    mask = is_row[:, None, None] & (heads < KEYS)[None, :, None] & (half < HALF)[None, None, :]
    at = d_key + far * key_row + heads[None, :, None] * key_head + inner
    to = d_fused + far * width + (QUERIES + heads)[None, :, None] * (2 * HALF) + inner
    first, second = tl.load(at, mask, 0.0).to(tl.float32), tl.load(at + HALF, mask, 0.0).to(tl.float32)
    tl.store(to, (first * turn - second * lift).to(kind), mask)
    tl.store(to + HALF, (second * turn + first * lift).to(kind), mask)

    at = d_value + far * value_row + heads[None, :, None] * value_head + inner
    to = d_fused + far * width + (QUERIES + KEYS + heads)[None, :, None] * (2 * HALF) + inner
    tl.store(to, tl.load(at, mask, 0.0).to(kind), mask)
    tl.store(to + HALF, tl.load(at + HALF, mask, 0.0).to(kind), mask)


@triton.jit
def _sum(values, order, bounds, total, width, COLUMNS: tl.constexpr):
    token = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = columns < width
    low, high = tl.load(bounds + token), tl.load(bounds + token + 1)
    found = tl.zeros([COLUMNS], tl.float32)
    for place in range(low, high):
        row = tl.load(order + place)
        found += tl.load(values + row * width + columns, mask, 0.0).to(tl.float32)
    tl.store(total + token.to(tl.int64) * width + columns, found.to(total.dtype.element_ty), mask)
