"""`strop.kernels.attention` in Triton, forward: one program per block of queries of one head."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels import attention
from strop.kernels.attention import Heads, Varlen
from strop.kernels.triton.summing import CHUNK, STEP, added, merged, nothing, scored, weighed

# `benchmarks/training_parts.py --tune` tries others; another STEP would round otherwise than engines do
ATTEND = {"STEP": STEP, "num_warps": 4, "num_stages": 3}


def attend(
    fused: Tensor, heads: Heads, plan: Varlen, scale: float, window: int | None = None, cap: float | None = None
) -> tuple[Tensor, Tensor]:
    tokens = len(fused)
    output = torch.empty(tokens, heads.queries * heads.size, dtype=fused.dtype, device=fused.device)
    level = torch.empty(heads.queries, tokens, dtype=torch.float32, device=fused.device)
    _attend[(heads.queries, len(plan.queries))](
        fused, plan.gather, plan.queries, output, level, tokens, scale * math.log2(math.e),
        BLOCK=attention.QUERY_BLOCK, CHUNK=CHUNK, **shape_of(heads, plan, window, cap), **options_of(ATTEND, heads),
        enable_fp_fusion=False,
    )  # fmt: skip
    return output, level


def shape_of(heads: Heads, plan: Varlen, window: int | None, cap: float | None) -> dict[str, Any]:
    found = {"HEADS": heads.queries, "KEYS": heads.keys, "SIZE": heads.size, "IS_SHARED": plan.gather is not None}
    return found | {"WINDOW": window or 0, "CAP": (cap or 0.0) * math.log2(math.e)}


def options_of(found: dict[str, int], heads: Heads) -> dict[str, int]:
    """Larger heads need more registers, and those of 256 more of the memory that programs share."""
    if heads.size > 128:
        return found | {"num_warps": 8, "num_stages": 1}
    if found is ATTEND:  # sums of chunks that are done are seldom touched: better kept elsewhere than a program less
        return found | {"maxnreg": 128} if heads.size <= 64 else found
    return found if heads.size <= 64 else found | {"num_warps": 8}


@triton.jit
def rows_of(fused, gather, first, count, offset, start, LENGTH: tl.constexpr, SIZE: tl.constexpr,
             WIDTH: tl.constexpr, IS_SHARED: tl.constexpr):  # fmt: skip
    """Keys or values [LENGTH, SIZE] from place `start` of a sequence on; 0 beyond its `count`."""
    at = start + tl.arange(0, LENGTH)
    is_there = at < count
    rows = (first + at).to(tl.int64)
    if IS_SHARED:
        rows = tl.load(gather + rows, is_there, 0).to(tl.int64)
    return tl.load(fused + rows[:, None] * WIDTH + offset + tl.arange(0, SIZE)[None, :], is_there[:, None], 0.0)


@triton.jit
def seen(query, key, WINDOW: tl.constexpr):
    """Whether the one place sees the other."""
    is_seen = query >= key
    if WINDOW > 0:
        is_seen = is_seen & (query < key + WINDOW)
    return is_seen


@triton.jit
def first_seen(place, whole, STEP: tl.constexpr, WINDOW: tl.constexpr):
    """The first key that a block of queries from `place` on sees, and to where all of it sees all: by steps."""
    low = place * 0
    if WINDOW > 0:
        low = tl.maximum(place - WINDOW + 1, 0) // STEP * STEP
        whole = low
    return low, whole


@triton.jit
def queries_of(fused, table, HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """A program's queries: the first token and all, which of them are, and their vectors [BLOCK, SIZE].

    Then of their sequence: its first key, the column of keys, where the queries stand and where they end.
    """
    entry = table + tl.program_id(1) * 4
    first, count, key_first, place = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2), tl.load(entry + 3)
    key_at = (HEADS + tl.program_id(0) // (HEADS // KEYS)) * SIZE
    rows, sizes = tl.arange(0, BLOCK), tl.arange(0, SIZE)
    is_row = rows < count
    at = (first + rows).to(tl.int64)[:, None]
    own = fused + at * ((HEADS + 2 * KEYS) * SIZE) + tl.program_id(0) * SIZE + sizes[None, :]
    return first, at, is_row, tl.load(own, is_row[:, None], 0.0), (key_first, key_at, place, place + count)


@triton.jit
def _attend(
    fused, gather, table, output, level, tokens, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    CHUNK: tl.constexpr, IS_SHARED: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    first, at, is_row, query, sequence = queries_of(fused, table, HEADS, KEYS, SIZE, BLOCK)
    place, end = sequence[2], sequence[3]
    done, chunk = nothing(BLOCK, SIZE), nothing(BLOCK, SIZE)
    all_seen = (place + 1) // STEP * STEP  # every query sees all keys before
    low, all_seen = first_seen(place, all_seen, STEP, WINDOW)
    for start in range(low, all_seen, STEP):
        done, chunk = _taken_in(
            fused, gather, query, sequence, done, chunk, start, low, factor,
            HEADS, KEYS, SIZE, BLOCK, STEP, CHUNK, IS_SHARED, WINDOW, CAP, False,
        )  # fmt: skip
    for start in range(all_seen, end, STEP):
        done, chunk = _taken_in(
            fused, gather, query, sequence, done, chunk, start, low, factor,
            HEADS, KEYS, SIZE, BLOCK, STEP, CHUNK, IS_SHARED, WINDOW, CAP, True,
        )  # fmt: skip
    if end > CHUNK:
        chunk = merged(done, chunk)
    most, total, found = chunk
    to = output + at * (HEADS * SIZE) + head * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(to, (found / total[:, None]).to(output.dtype.element_ty), is_row[:, None])
    tl.store(level + head * tokens + first + tl.arange(0, BLOCK), most + tl.log2(total), is_row)


@triton.jit
def _taken_in(
    fused, gather, query, sequence, done, chunk, start, low, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    CHUNK: tl.constexpr, IS_SHARED: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, IS_CUT: tl.constexpr,
):  # fmt: skip
    """The sums with STEP keys more, of which a query may not see all where `IS_CUT`."""
    WIDTH: tl.constexpr = (HEADS + 2 * KEYS) * SIZE
    key_first, key_at, place, end = sequence
    is_first = (start % CHUNK == 0) & (start > low)
    key = rows_of(fused, gather, key_first, end, key_at, start, STEP, SIZE, WIDTH, IS_SHARED)
    scores = scored(tl.dot(query, tl.trans(key)), factor, CAP)
    if IS_CUT:
        is_seen = seen((place + tl.arange(0, BLOCK))[:, None], (start + tl.arange(0, STEP))[None, :], WINDOW)
        scores = tl.where(is_seen, scores, float("-inf"))
    block = weighed(scores, chunk, is_first)
    value = rows_of(fused, gather, key_first, end, key_at + KEYS * SIZE, start, STEP, SIZE, WIDTH, IS_SHARED)
    return added(done, chunk, block, value, is_first, None)
