"""`strop.kernels.attention` in Triton, backward: one program per block of queries or of keys of one head.

It needs each row's output and log-sum-exp of the forward pass.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels import attention
from strop.kernels.attention import Angles, Heads, Varlen
from strop.kernels.triton.attention import first_seen, options_of, queries_of, rows_of, seen, shape_of
from strop.kernels.triton.summing import scored

# STEP: keys, or queries, that a program takes in at a time; `benchmarks/training_parts.py --tune` tries others
OF_QUERIES = {"STEP": 32, "num_warps": 4, "num_stages": 3}
OF_KEYS = {"STEP": 32, "num_warps": 4, "num_stages": 1}
_COLUMNS = 256  # of one program that sums


def attend_back(
    d_output: Tensor, fused: Tensor, output: Tensor, level: Tensor, heads: Heads, plan: Varlen, scale: float,
    angles: Angles | None = None, window: int | None = None, cap: float | None = None,
) -> Tensor:  # fmt: skip
    tokens = len(fused)
    d_fused, pulled = torch.empty_like(fused), torch.empty_like(level)
    shape = shape_of(heads, plan, window, cap) | {"IS_TURNED": angles is not None}
    cosine, sine = (None, None) if angles is None else angles
    _of_queries[(heads.queries, len(plan.queries))](
        d_output, fused, output, level, pulled, plan.gather, plan.queries, cosine, sine, d_fused, tokens, scale,
        scale * math.log2(math.e), BLOCK=attention.QUERY_BLOCK, **shape, **options_of(OF_QUERIES, heads),
    )  # fmt: skip
    into, skipped, width = d_fused, heads.queries * heads.size, heads.width
    if plan.gather is not None:  # a gradient for every reader of a key, to be summed
        width = 2 * heads.keys * heads.size
        into, skipped = torch.empty(len(plan.gather), width, dtype=fused.dtype, device=fused.device), 0
    _of_keys[(heads.keys, len(plan.keys))](
        d_output, fused, level, pulled, plan.gather, plan.keys, cosine, sine, into, skipped, width, tokens, scale,
        scale * math.log2(math.e), BLOCK=attention.KEY_BLOCK, **shape, **options_of(OF_KEYS, heads),
    )  # fmt: skip
    if plan.gather is not None:
        grid = (tokens, triton.cdiv(width, _COLUMNS))
        start = heads.queries * heads.size
        _sum[grid](into, plan.order, plan.bounds, d_fused, width, heads.width, start, COLUMNS=_COLUMNS, num_warps=2)
    return d_fused


@triton.jit
def _store(found, to, token, mask, cosine, sine, BLOCK: tl.constexpr, SIZE: tl.constexpr, IS_TURNED: tl.constexpr):
    """Rows [BLOCK, SIZE] as they are, or turned back by the angles of their tokens."""
    if IS_TURNED:
        HALF: tl.constexpr = SIZE // 2
        half = tl.arange(0, HALF)[None, :]
        first, second = tl.split(tl.permute(tl.reshape(found, [BLOCK, 2, HALF]), (0, 2, 1)))
        turn, lift = tl.load(cosine + token * HALF + half, mask, 0.0), tl.load(sine + token * HALF + half, mask, 0.0)
        tl.store(to + half, (first * turn + second * lift).to(to.dtype.element_ty), mask)
        tl.store(to + HALF + half, (second * turn - first * lift).to(to.dtype.element_ty), mask)
    else:
        tl.store(to + tl.arange(0, SIZE)[None, :], found.to(to.dtype.element_ty), mask)


@triton.jit
def _of_queries(
    d_output, fused, output, level, pulled, gather, table, cosine, sine, d_fused, tokens, scale, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, IS_SHARED: tl.constexpr, IS_TURNED: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr,
):  # fmt: skip
    """dQ = dS K, with dS = P (dO V' - sum(dO O)); the last sum is left for `_of_keys`."""
    head = tl.program_id(0)
    first, at, is_row, query, sequence = queries_of(fused, table, HEADS, KEYS, SIZE, BLOCK)
    place, end = sequence[2], sequence[3]
    rows = tl.arange(0, BLOCK)
    narrow = at * (HEADS * SIZE) + head * SIZE + tl.arange(0, SIZE)[None, :]
    pull = tl.load(d_output + narrow, is_row[:, None], 0.0)
    own = tl.load(output + narrow, is_row[:, None], 0.0)
    bias = tl.sum(pull.to(tl.float32) * own.to(tl.float32), 1)
    tl.store(pulled + head * tokens + first + rows, bias, is_row)
    height = tl.load(level + head * tokens + first + rows, is_row, 0.0)
    found = tl.zeros([BLOCK, SIZE], tl.float32)
    whole = (place + 1) // STEP * STEP
    low, whole = first_seen(place, whole, STEP, WINDOW)
    for start in range(low, whole, STEP):
        found = _taken_in(
            fused, gather, query, sequence, pull, height, bias, found, start, factor,
            HEADS, KEYS, SIZE, BLOCK, STEP, IS_SHARED, WINDOW, CAP, False,
        )  # fmt: skip
    for start in range(whole, end, STEP):
        found = _taken_in(
            fused, gather, query, sequence, pull, height, bias, found, start, factor,
            HEADS, KEYS, SIZE, BLOCK, STEP, IS_SHARED, WINDOW, CAP, True,
        )  # fmt: skip
    to = d_fused + at * ((HEADS + 2 * KEYS) * SIZE) + head * SIZE
    _store(found * scale, to, at, is_row[:, None], cosine, sine, BLOCK, SIZE, IS_TURNED)


@triton.jit
def _taken_in(
    fused, gather, query, sequence, pull, height, bias, found, start, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    IS_SHARED: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, IS_CUT: tl.constexpr,
):  # fmt: skip
    """The sum over keys with STEP more, of which a query may not see all where `IS_CUT`."""
    WIDTH: tl.constexpr = (HEADS + 2 * KEYS) * SIZE
    key_first, key_at, place, end = sequence
    key = rows_of(fused, gather, key_first, end, key_at, start, STEP, SIZE, WIDTH, IS_SHARED)
    value = rows_of(fused, gather, key_first, end, key_at + KEYS * SIZE, start, STEP, SIZE, WIDTH, IS_SHARED)
    scores = scored(tl.dot(query, tl.trans(key)), factor, CAP)
    shares = tl.exp2(scores - height[:, None])
    if IS_CUT:
        is_seen = seen((place + tl.arange(0, BLOCK))[:, None], (start + tl.arange(0, STEP))[None, :], WINDOW)
        shares = tl.where(is_seen, shares, 0.0)
    d_scores = _d_scores(scores, shares, tl.dot(pull, tl.trans(value)), bias[:, None], CAP)
    return tl.dot(d_scores.to(key.dtype), key, found)


@triton.jit
def _d_scores(scores, shares, pulls, bias, CAP: tl.constexpr):
    """The gradient of scores as they were before a cap bent them."""
    found = shares * (pulls - bias)
    if CAP > 0:
        found *= 1 - (scores / CAP) * (scores / CAP)
    return found


@triton.jit
def _of_keys(
    d_output, fused, level, pulled, gather, table, cosine, sine, into, skipped, width, tokens, scale, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, IS_SHARED: tl.constexpr, IS_TURNED: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr,
):  # fmt: skip
    """dV = P' dO and dK = dS' Q over all queries that see a key, of every head that shares it."""
    of_keys = tl.program_id(0)
    entry = table + tl.program_id(1) * 6
    key_first, key_count, key_place = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2)
    first, count, place = tl.load(entry + 3), tl.load(entry + 4), tl.load(entry + 5)
    WIDTH: tl.constexpr = (HEADS + 2 * KEYS) * SIZE
    GROUP: tl.constexpr = HEADS // KEYS
    key_at = (HEADS + of_keys) * SIZE
    key = rows_of(fused, gather, key_first, key_count, key_at, 0, BLOCK, SIZE, WIDTH, IS_SHARED)
    value = rows_of(fused, gather, key_first, key_count, key_at + KEYS * SIZE, 0, BLOCK, SIZE, WIDTH, IS_SHARED)
    rows, sizes = tl.arange(0, BLOCK), tl.arange(0, SIZE)
    d_key, d_value = tl.zeros([BLOCK, SIZE], tl.float32), tl.zeros([BLOCK, SIZE], tl.float32)
    low = tl.maximum(key_place - place, 0) // STEP * STEP
    # from here on every query sees every key of this block
    whole = tl.maximum(tl.cdiv(key_place + BLOCK - 1 - place, STEP), 0) * STEP
    end = count
    if WINDOW > 0:
        end = tl.minimum(count, tl.maximum(key_place + BLOCK + WINDOW - 1 - place, 0))
        whole = end
    for head in range(of_keys * GROUP, of_keys * GROUP + GROUP):
        for start in range(low, end, STEP):
            asked = start + tl.arange(0, STEP)
            is_row = asked < count
            at = (first + asked).to(tl.int64)[:, None]
            query = tl.load(fused + at * WIDTH + head * SIZE + sizes[None, :], is_row[:, None], 0.0)
            pull = tl.load(d_output + at * (HEADS * SIZE) + head * SIZE + sizes[None, :], is_row[:, None], 0.0)
            height = tl.load(level + head * tokens + first + asked, is_row, float("inf"))  # so that its share is 0
            bias = tl.load(pulled + head * tokens + first + asked, is_row, 0.0)
            scores = scored(tl.dot(key, tl.trans(query)), factor, CAP)
            shares = tl.exp2(scores - height[None, :])  # [BLOCK, STEP]
            if start < whole:
                is_seen = seen((place + asked)[None, :], (key_place + rows)[:, None], WINDOW)
                shares = tl.where(is_seen, shares, 0.0)
            d_value = tl.dot(shares.to(pull.dtype), pull, d_value)
            d_scores = _d_scores(scores, shares, tl.dot(value, tl.trans(pull)), bias[None, :], CAP)
            d_key = tl.dot(d_scores.to(query.dtype), query, d_key)
    is_key = (rows < key_count)[:, None]
    token = (key_first + rows).to(tl.int64)
    to = into + token[:, None] * width + skipped + of_keys * SIZE
    if IS_SHARED:
        token = tl.load(gather + token, rows < key_count, 0).to(tl.int64)
    _store(d_key * scale, to, token[:, None], is_key, cosine, sine, BLOCK, SIZE, IS_TURNED)
    tl.store(to + KEYS * SIZE + sizes[None, :], d_value.to(into.dtype.element_ty), is_key)


@triton.jit
def _sum(values, order, bounds, total, width, total_width, start, COLUMNS: tl.constexpr):
    """Rows of the same token, in a fixed order."""
    token = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = columns < width
    low, high = tl.load(bounds + token), tl.load(bounds + token + 1)
    found = tl.zeros([COLUMNS], tl.float32)
    for place in range(low, high):
        row = tl.load(order + place).to(tl.int64)
        found += tl.load(values + row * width + columns, mask, 0.0).to(tl.float32)
    tl.store(total + token.to(tl.int64) * total_width + start + columns, found.to(total.dtype.element_ty), mask)
