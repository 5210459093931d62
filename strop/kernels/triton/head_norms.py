"""`strop.kernels.head_norms` in Triton: a program processes all heads of one token after another."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.attention import Angles, Heads
from strop.kernels.head_norms import HeadNorms

_PROGRAMS = 528  # of the way back, four for each multiprocessor: each sums its part of the weights' gradients


def forward(fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles) -> Tensor:
    turned = torch.empty_like(fused)
    _forward[(len(fused),)](
        fused, turned, *angles, norms.query, norms.key, norms.epsilon,
        **_shape(heads, norms), VALUES=triton.next_power_of_2(heads.keys), num_warps=4, enable_fp_fusion=False,
    )  # fmt: skip
    return turned


def backward(
    d_turned: Tensor, fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles
) -> tuple[Tensor, Tensor, Tensor]:
    programs, count = min(_PROGRAMS, len(fused)), heads.queries + heads.keys
    partial = torch.empty(programs, count, heads.size, dtype=torch.float32, device=fused.device)
    _backward[(programs,)](
        d_turned, fused, *angles, norms.query, norms.key, norms.epsilon, partial, len(fused),
        **_shape(heads, norms), num_warps=8,
    )  # fmt: skip
    both = torch.split(partial.sum(0), [heads.queries, heads.keys])
    of_weights = [each.reshape(-1, len(weight)).sum(0) for each, weight in zip(both, norms[:2], strict=True)]
    return d_turned, of_weights[0], of_weights[1]


def _shape(heads: Heads, norms: HeadNorms) -> dict[str, int | float | bool]:
    return {
        "OFFSET": norms.offset,
        "IS_WIDE": len(norms.query) > heads.size,
        "QUERIES": heads.queries,
        "KEYS": heads.keys,
        "HALF": heads.size // 2,
        "BLOCK": triton.next_power_of_2(heads.queries + heads.keys),
    }


@triton.jit
def summed(values, ROWS: tl.constexpr, SIZE: tl.constexpr):
    """[ROWS, SIZE] -> [ROWS], neighbours first: in this order however a kernel lays values out over its threads."""
    for step in tl.static_range(SIZE.bit_length() - 1):
        one, other = tl.split(tl.reshape(values, [ROWS, SIZE >> (step + 1), 2]))
        values = one + other
    return tl.reshape(values, [ROWS])


@triton.jit
def mean_squares(first, second, head, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
                 BLOCK: tl.constexpr, IS_WIDE: tl.constexpr):  # fmt: skip
    """Of heads [BLOCK, HALF] twice: of each, or of all queries and of all keys, [BLOCK]."""
    return means(first * first + second * second, head, QUERIES, KEYS, HALF, BLOCK, IS_WIDE)


@triton.jit
def means(values, head, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
          IS_WIDE: tl.constexpr):  # fmt: skip
    """[BLOCK, HALF], sums of two places each -> the mean of each head, or of all of its kind [BLOCK]."""
    mean = summed(values, BLOCK, HALF) / (2 * HALF)
    if IS_WIDE:
        of_queries = tl.where(head < QUERIES, mean, 0.0)
        of_keys = tl.where((head >= QUERIES) & (head < QUERIES + KEYS), mean, 0.0)
        queries = summed(tl.reshape(of_queries, [1, BLOCK]), 1, BLOCK) / QUERIES  # [1]
        keys = summed(tl.reshape(of_keys, [1, BLOCK]), 1, BLOCK) / KEYS
        mean = tl.where(head < QUERIES, tl.broadcast_to(queries, [BLOCK]), tl.broadcast_to(keys, [BLOCK]))
    return mean


@triton.jit
def factors(query_norm, key_norm, head, half, kind, OFFSET: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
            HALF: tl.constexpr, IS_WIDE: tl.constexpr):  # fmt: skip
    """What the first and the second half of each head is multiplied by [BLOCK, HALF], in float32."""
    is_query = (head < QUERIES)[:, None]
    is_key = (head >= QUERIES)[:, None] & (head < QUERIES + KEYS)[:, None]
    at = half[None, :] + head[:, None] * 0
    if IS_WIDE:
        at = tl.where(is_query, head[:, None], head[:, None] - QUERIES) * (2 * HALF) + half[None, :]
    low = tl.load(query_norm + at, is_query, 0.0) + tl.load(key_norm + at, is_key, 0.0)
    high = tl.load(query_norm + HALF + at, is_query, 0.0) + tl.load(key_norm + HALF + at, is_key, 0.0)
    return low.to(kind).to(tl.float32) + OFFSET, high.to(kind).to(tl.float32) + OFFSET


@triton.jit
def _forward(
    fused, turned, cosine, sine, query_norm, key_norm, epsilon,
    OFFSET: tl.constexpr, IS_WIDE: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
    BLOCK: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    kind = fused.dtype.element_ty
    SIZE: tl.constexpr = 2 * HALF
    row = token * (QUERIES + 2 * KEYS) * SIZE
    head, half = tl.arange(0, BLOCK), tl.arange(0, HALF)
    place = row + head[:, None] * SIZE + half[None, :]
    kept = (head < QUERIES + KEYS)[:, None]
    first = tl.load(fused + place, kept, 0.0).to(tl.float32)
    second = tl.load(fused + place + HALF, kept, 0.0).to(tl.float32)
    low, high = factors(query_norm, key_norm, head, half, kind, OFFSET, QUERIES, KEYS, HALF, IS_WIDE)
    scale = tl.rsqrt(mean_squares(first, second, head, QUERIES, KEYS, HALF, BLOCK, IS_WIDE) + epsilon)[:, None]
    first = (first * scale).to(kind).to(tl.float32) * low
    second = (second * scale).to(kind).to(tl.float32) * high
    turn = tl.load(cosine + token * HALF + half)[None, :]
    lift = tl.load(sine + token * HALF + half)[None, :]
    tl.store(turned + place, (first * turn - second * lift).to(kind), kept)
    tl.store(turned + place + HALF, (second * turn + first * lift).to(kind), kept)
    value = row + (QUERIES + KEYS + tl.arange(0, VALUES)[:, None]) * SIZE + tl.arange(0, SIZE)[None, :]
    exists = (tl.arange(0, VALUES) < KEYS)[:, None]
    tl.store(turned + value, tl.load(fused + value, exists, 0.0), exists)


@triton.jit
def _backward(
    d_turned, fused, cosine, sine, query_norm, key_norm, epsilon, partial, count,
    OFFSET: tl.constexpr, IS_WIDE: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HALF: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    kind = fused.dtype.element_ty
    SIZE: tl.constexpr = 2 * HALF
    head, half = tl.arange(0, BLOCK), tl.arange(0, HALF)
    kept = (head < QUERIES + KEYS)[:, None]
    low, high = factors(query_norm, key_norm, head, half, kind, OFFSET, QUERIES, KEYS, HALF, IS_WIDE)
    d_low, d_high = tl.zeros([BLOCK, HALF], tl.float32), tl.zeros([BLOCK, HALF], tl.float32)
    for number in range(tl.program_id(0), count, tl.num_programs(0)):
        token = tl.cast(number, tl.int64)
        place = token * (QUERIES + 2 * KEYS) * SIZE + head[:, None] * SIZE + half[None, :]
        first = tl.load(fused + place, kept, 0.0).to(tl.float32)
        second = tl.load(fused + place + HALF, kept, 0.0).to(tl.float32)
        scale = tl.rsqrt(mean_squares(first, second, head, QUERIES, KEYS, HALF, BLOCK, IS_WIDE) + epsilon)[:, None]
        first, second = first * scale, second * scale  # normal
        turn = tl.load(cosine + token * HALF + half)[None, :]
        lift = tl.load(sine + token * HALF + half)[None, :]
        one = tl.load(d_turned + place, kept, 0.0).to(tl.float32)
        other = tl.load(d_turned + place + HALF, kept, 0.0).to(tl.float32)
        d_first, d_second = one * turn + other * lift, other * turn - one * lift  # turned back
        d_low += d_first * first.to(kind).to(tl.float32)
        d_high += d_second * second.to(kind).to(tl.float32)
        d_first, d_second = d_first * low, d_second * high
        shared = means(d_first * first + d_second * second, head, QUERIES, KEYS, HALF, BLOCK, IS_WIDE)[:, None]
        tl.store(d_turned + place, ((d_first - first * shared) * scale).to(kind), kept)
        tl.store(d_turned + place + HALF, ((d_second - second * shared) * scale).to(kind), kept)
    into = partial + tl.program_id(0) * (QUERIES + KEYS) * SIZE + head[:, None] * SIZE + half[None, :]
    tl.store(into, d_low, kept)
    tl.store(into + HALF, d_high, kept)
