"""Attention over a paged KV cache in Triton, with the trainer's order of summation (`summing`).

With one program per head, a step of a few long sequences would leave most of a GPU idle. So several programs share the
chunks of a head's keys, and `_merge` combines their results. Their number comes from sizes that a captured step never
changes; the bits are those of one program that reads all keys.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.decode import PAGE, TokenPlaces
from strop.kernels.triton.attention import seen
from strop.kernels.triton.summing import CHUNK, STEP, added, merged, nothing, scored, weighed

_ROWS = 64  # queries of one program
_PROGRAMS = 256  # that read long sequences and keep a GPU busy: as many as are there at once
_MANY = 2048  # programs of rows that are so many that they are short
_TOGETHER = 8  # chunks that a merge reads before it needs the first


def attend(
    query: Tensor, keys: Tensor, values: Tensor, where: TokenPlaces, scale: float,
    window: int | None = None, cap: float | None = None,
) -> Tensor:  # fmt: skip
    """`decode.DecodeOperations.attend`."""
    (tokens, num_heads, size), num_keys = query.shape, keys.shape[1]
    output, width, factor = torch.empty_like(query), where.tables.shape[1], scale * math.log2(math.e)
    shape: dict[str, Any] = {"HEADS": num_heads, "KEYS": num_keys, "SIZE": size, "PAGE": PAGE, "STEP": STEP}
    shape |= {"CHUNK": CHUNK, "WINDOW": window or 0, "CAP": (cap or 0.0) * math.log2(math.e), "enable_fp_fusion": False}
    if where.runs is not None:
        _attend_many[(len(where.runs), num_heads)](
            query, keys, values, output, where.runs, where.slots, where.tables, width, factor, **shape, ROWS=_ROWS,
            num_warps=8 if size > 128 else 4, num_stages=1 if size > 128 else 2,
        )  # fmt: skip
        return output
    chunks, pairs = triton.cdiv(width * PAGE, CHUNK), tokens * num_keys
    shape |= options_of(query.dtype, size, num_heads // num_keys, pairs)
    given = (query, keys, values, output, where.slots, where.positions, where.tables, width, factor)
    if pairs >= _MANY:
        _attend_short[(tokens, num_keys)](*given, output, 1, **shape, IS_SPLIT=False)
        return output
    if (lanes := lanes_of(pairs, chunks)) == 1:
        _attend_long[(tokens, num_keys)](*given, **shape)
        return output
    parts = torch.empty(tokens * num_heads * chunks * (size + 2), dtype=torch.float32, device=query.device)
    _attend_short[(tokens, num_keys, lanes)](*given, parts, chunks, **shape, IS_SPLIT=True)
    _merge[(tokens, num_heads)](
        parts, output, where.positions, chunks, SIZE=size, CHUNK=CHUNK, WINDOW=window or 0, TOGETHER=_TOGETHER,
        num_warps=1, enable_fp_fusion=False,
    )  # fmt: skip
    return output


def lanes_of(pairs: int, chunks: int) -> int:
    """How many programs share the chunks of each of these pairs of a token and a head of keys."""
    return max(1, min(chunks, _PROGRAMS // pairs))


def options_of(dtype: torch.dtype, size: int, group: int, pairs: int) -> dict[str, Any]:
    """Most rows are empty: they are there for the warps that read keys together, as each needs 16 of its own.

    Were a row shared by warps as the trainer's is not, its sum would be another. Many short sequences keep a GPU busy
    with one warp each.
    """
    rows = triton.next_power_of_2(group)
    if dtype == torch.float32 or (pairs >= _MANY and size <= 128):
        return {"ROWS": max(16, rows), "num_warps": 1, "num_stages": 3}
    if size > 128:  # heads that need more registers, and more of the memory that programs share
        return {"ROWS": max(_ROWS, rows), "num_warps": 8, "num_stages": 2}
    return {"ROWS": max(_ROWS, rows), "num_warps": 4, "num_stages": 5}


@triton.jit
def _attend_long(
    query, keys, values, output, slots, positions, tables, width, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    CHUNK: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Of one token and the heads that share keys: all chunks, in one loop that reads ahead across their borders."""
    group = tl.program_id(1)
    own, is_row, table, end = _asker(slots, positions, tables, width, HEADS, KEYS, ROWS)
    asked = _rows_at(query, own, is_row, SIZE)
    done, chunk = nothing(ROWS, SIZE), nothing(ROWS, SIZE)
    low = _first_chunk(end, CHUNK, WINDOW) * CHUNK
    for start in range(low, end, STEP):
        is_first = (start % CHUNK == 0) & (start > low)
        place, is_seen = _places(table, group, start, end, KEYS, SIZE, PAGE, STEP, WINDOW)
        done, chunk = _taken_in(
            asked, keys, values, place, is_seen, is_seen[None, :], done, chunk, is_first, factor, CAP
        )
    if end > CHUNK:
        chunk = merged(done, chunk)
    _store(output, own, is_row, chunk, SIZE)


@triton.jit
def _attend_short(
    query, keys, values, output, slots, positions, tables, width, factor, parts, chunks,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    CHUNK: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, ROWS: tl.constexpr, IS_SPLIT: tl.constexpr,
):  # fmt: skip
    """Of one token and the heads that share keys: a few chunks, all of them or every so manieth for `_merge`.

    `parts` holds the weighted values of every head and chunk, and then their highest scores and totals.
    """
    group = tl.program_id(1)
    own, is_row, table, end = _asker(slots, positions, tables, width, HEADS, KEYS, ROWS)
    asked = _rows_at(query, own, is_row, SIZE)
    partials = parts + tl.num_programs(0).to(tl.int64) * HEADS * chunks * SIZE
    done = nothing(ROWS, SIZE)
    first = _first_chunk(end, CHUNK, WINDOW) + tl.program_id(2)
    if first * CHUNK >= end:
        return
    for chunk in range(first, tl.cdiv(end, CHUNK), tl.num_programs(2)):
        sums = nothing(ROWS, SIZE)
        for start in range(chunk * CHUNK, tl.minimum(chunk * CHUNK + CHUNK, end), STEP):
            place, is_seen = _places(table, group, start, end, KEYS, SIZE, PAGE, STEP, WINDOW)
            done, sums = _taken_in(
                asked, keys, values, place, is_seen, is_seen[None, :], done, sums, False, factor, CAP
            )
        if IS_SPLIT:
            at = own * chunks + chunk
            tl.store(parts + at[:, None] * SIZE + tl.arange(0, SIZE)[None, :], sums[2], mask=is_row[:, None])
            tl.store(partials + at * 2, sums[0], mask=is_row)
            tl.store(partials + at * 2 + 1, sums[1], mask=is_row)
        elif chunk > first:
            done = merged(done, sums)
        else:
            done = sums
    if not IS_SPLIT:
        _store(output, own, is_row, done, SIZE)


@triton.jit
def _merge(
    parts, output, positions, chunks, SIZE: tl.constexpr, CHUNK: tl.constexpr, WINDOW: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """Of one token and head: its chunks in order."""
    token = tl.program_id(0).to(tl.int64)
    end = tl.load(positions + token) + 1
    head = token * tl.num_programs(1) + tl.program_id(1)
    partials = parts + tl.num_programs(0).to(tl.int64) * tl.num_programs(1) * chunks * SIZE
    column, count = tl.arange(0, SIZE)[None, :], tl.cdiv(end, CHUNK)
    done = nothing(1, SIZE)
    for start in range(_first_chunk(end, CHUNK, WINDOW), count, TOGETHER):
        for number in tl.static_range(TOGETHER):
            chunk = start + number + tl.arange(0, 1)
            at, is_there = head * chunks + chunk, chunk < count
            other = tl.load(parts + at[:, None] * SIZE + column, mask=is_there[:, None], other=0.0)
            height = tl.load(partials + at * 2, mask=is_there, other=-1e38)
            weight = tl.load(partials + at * 2 + 1, mask=is_there, other=0.0)
            done = merged(done, (height, weight, other))
    tl.store(output + head * SIZE + column, (done[2] / done[1][:, None]).to(output.dtype.element_ty))


@triton.jit
def _asker(slots, positions, tables, width, HEADS: tl.constexpr, KEYS: tl.constexpr, ROWS: tl.constexpr):
    """The heads of a program and which of them are, its slot's table, and how many keys it sees."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    end = tl.load(positions + token) + 1
    GROUP: tl.constexpr = HEADS // KEYS
    row = tl.arange(0, ROWS)
    return token * HEADS + tl.program_id(1) * GROUP + row, row < GROUP, tables + slot * width, end


@triton.jit
def _rows_at(query, own, is_row, SIZE: tl.constexpr):
    return tl.load(query + own[:, None] * SIZE + tl.arange(0, SIZE)[None, :], mask=is_row[:, None], other=0.0)


@triton.jit
def _first_chunk(end, CHUNK: tl.constexpr, WINDOW: tl.constexpr):
    """The first of which the last of `end` tokens sees something."""
    found = end * 0
    if WINDOW > 0:
        found = tl.maximum(end - WINDOW, 0) // CHUNK
    return found


@triton.jit
def _places(
    table, group, start, end, KEYS: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    WINDOW: tl.constexpr,
):  # fmt: skip
    """Where STEP keys lie, and which of them the last of `end` tokens sees."""
    index = start + tl.arange(0, STEP)
    is_seen = index < end
    if WINDOW > 0:
        is_seen = is_seen & (index >= end - WINDOW)
    page = tl.load(table + index // PAGE, mask=is_seen, other=0).to(tl.int64)
    return ((page * KEYS + group) * PAGE + index % PAGE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :], is_seen


@triton.jit
def _attend_many(
    query, keys, values, output, runs, slots, tables, width, factor,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SIZE: tl.constexpr, PAGE: tl.constexpr, STEP: tl.constexpr,
    CHUNK: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Of one head and a run of a slot's tokens."""
    run = tl.program_id(0)
    head = tl.program_id(1)
    first = tl.load(runs + run * 3).to(tl.int64)
    position = tl.load(runs + run * 3 + 1)
    count = tl.load(runs + run * 3 + 2)
    table = tables + tl.load(slots + first).to(tl.int64) * width
    row = tl.arange(0, ROWS)
    own = (first + row) * HEADS + head
    is_row = row < count
    asked = _rows_at(query, own, is_row, SIZE)
    end = position + count
    done, chunk = nothing(ROWS, SIZE), nothing(ROWS, SIZE)
    low = end * 0
    if WINDOW > 0:
        low = tl.maximum(position + 1 - WINDOW, 0) // STEP * STEP
    for start in range(low, end, STEP):
        is_first = (start % CHUNK == 0) & (start > low)
        place, is_there = _places(table, head // (HEADS // KEYS), start, end, KEYS, SIZE, PAGE, STEP, 0)
        is_seen = seen((position + row)[:, None], (start + tl.arange(0, STEP))[None, :], WINDOW)
        done, chunk = _taken_in(asked, keys, values, place, is_there, is_seen, done, chunk, is_first, factor, CAP)
    if end > CHUNK:
        chunk = merged(done, chunk)
    _store(output, own, is_row, chunk, SIZE)


@triton.jit
def _taken_in(asked, keys, values, place, is_there, is_seen, done, chunk, is_first, factor, CAP: tl.constexpr):
    """The sums with STEP keys more: those at these places that are there, of which each query sees some."""
    key = tl.load(keys + place, mask=is_there[:, None], other=0.0)
    scores = scored(tl.dot(asked, tl.trans(key), input_precision="ieee"), factor, CAP)
    block = weighed(tl.where(is_seen, scores, float("-inf")), chunk, is_first)
    value = tl.load(values + place, mask=is_there[:, None], other=0.0)
    return added(done, chunk, block, value, is_first, "ieee")


@triton.jit
def _store(output, own, is_row, done, SIZE: tl.constexpr):
    """What the sums of all chunks come to."""
    to = output + own[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(to, (done[2] / done[1][:, None]).to(output.dtype.element_ty), mask=is_row[:, None])
