"""Top-k and top-p truncation in Triton without a sort: the threshold of each row, as a distance from its highest score.

The bits of a distance order as distances do. Each pass over the rows tests several thresholds and counts the tokens and
the probability mass within each. After `_LOOKS` passes the few remaining scores are gathered in order, and one program
finds the threshold among them. Rows without limits end at once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.sampling.sample_token import Draws

_LOOKS, _WAYS = 3, 8  # over whole rows, and distances of each
_ROOM = 8192  # scores of a row that are gathered; with more of them all are looked at again and again
_TOGETHER = 2048  # scores that are looked at together in the end


def cut(scores: Tensor, how: Draws, partials: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """The distance of the last token that is kept, and the last such token [T]; blocks are weighed anew."""
    rows, size = scores.shape
    blocks = partials.shape[2]
    limits = (how.temperature, how.top_k, how.top_p)
    counts = scores.new_empty(rows, blocks, _WAYS, dtype=torch.int32)
    masses = scores.new_empty(rows, blocks, _WAYS)
    starts = scores.new_empty(rows, blocks, dtype=torch.int32)
    bounds = scores.new_empty(rows, 3, dtype=torch.int32)
    base = scores.new_empty(rows, 3, dtype=torch.float64)
    room, ids = scores.new_empty(rows, _ROOM), scores.new_empty(rows, _ROOM, dtype=torch.int32)
    cuts, lasts = scores.new_empty(rows), scores.new_empty(rows, dtype=torch.int32)
    wide = {"BLOCKS": triton.next_power_of_2(blocks)}
    for look in range(_LOOKS):
        ways = {"IS_FIRST": look == 0, "WAYS": _WAYS}
        _look[(rows, blocks)](
            scores, *limits, partials, bounds, counts, masses, size, blocks, BLOCK=block, **wide, **ways, num_warps=8
        )
        _narrow[(rows,)](*limits, bounds, counts, masses, base, starts, blocks, **wide, **ways, num_warps=4)
    _gather[(rows, blocks)](
        scores, *limits, partials, bounds, starts, room, ids, size, blocks, BLOCK=block, **wide, ROOM=_ROOM, num_warps=8
    )
    _choose[(rows,)](
        scores, *limits, partials, bounds, base, room, ids, cuts, lasts, size, blocks,
        **wide, ROOM=_ROOM, TOGETHER=_TOGETHER, num_warps=8,
    )  # fmt: skip
    _reweigh[(rows, blocks)](
        scores, *limits, partials, cuts, lasts, size, blocks, rows * blocks, BLOCK=block, **wide, num_warps=8
    )
    return cuts, lasts


@triton.jit
def divided(row, index, size, heat):
    """Scores over the temperature, rounded as torch does; -inf beyond the vocabulary."""
    score = tl.load(row + index, mask=index < size, other=float("-inf"))
    return tl.div_rn(score, tl.where(heat > 0, heat, 1.0) + tl.zeros_like(score))


@triton.jit
def _is_cut(temperature, top_k, top_p, row):
    is_limited = (tl.load(top_k + row) > 0) | (tl.load(top_p + row) < 1)
    return is_limited & (tl.load(temperature + row) > 0)


@triton.jit
def _top(partials, row, blocks, BLOCKS: tl.constexpr):
    number = tl.arange(0, BLOCKS)
    return tl.max(tl.load(partials + row * blocks + number, mask=number < blocks, other=float("-inf")), 0)


@triton.jit
def _scores_of(scores, temperature, partials, row, size, blocks, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """The row's highest score; tokens of a program's block, and their scores over the temperature."""
    top = _top(partials, row, blocks, BLOCKS)
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    return top, index, divided(scores + row * size, index, size, tl.load(temperature + row))


@triton.jit
def _bits(score, top):
    """The distance as a number that orders alike; no number at all lies beyond infinity."""
    return tl.abs(top - score).to(tl.int32, bitcast=True)  # two zeros may be -0 apart


@triton.jit
def _ends(bounds, row, IS_FIRST: tl.constexpr, WAYS: tl.constexpr):
    """Distances to look at, as bits: below all, 1, 2, 4, ... and infinity at first, later even steps between bounds."""
    way = tl.arange(0, WAYS)
    if IS_FIRST:
        ends = 0x3F800000 + ((way - 1) << 23)
        return tl.where(way == 0, -1, tl.where(way == WAYS - 1, 0x7F800000, ends))
    else:
        low, high = tl.load(bounds + row * 3).to(tl.int64), tl.load(bounds + row * 3 + 1).to(tl.int64)
        return (low + ((high - low) * way + WAYS - 2) // (WAYS - 1)).to(tl.int32)


@triton.jit
def _look(
    scores, temperature, top_k, top_p, partials, bounds, counts, masses, size, blocks,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, IS_FIRST: tl.constexpr, WAYS: tl.constexpr,
):  # fmt: skip
    """Of one block of a row: tokens within each distance, and what they weigh."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if _is_cut(temperature, top_k, top_p, row):
        top, index, score = _scores_of(scores, temperature, partials, row, size, blocks, BLOCK, BLOCKS)
        bits, ends = _bits(score, top), _ends(bounds, row, IS_FIRST, WAYS)
        is_within = (bits[None, :] <= ends[:, None]) & (index < size)[None, :]
        target = (row * blocks + block) * WAYS + tl.arange(0, WAYS)
        tl.store(counts + target, tl.sum(is_within.to(tl.int32), 1))
        tl.store(masses + target, tl.sum(tl.where(is_within, tl.exp(score - top)[None, :], 0.0), 1))


@triton.jit
def _narrow(
    temperature, top_k, top_p, bounds, counts, masses, base, starts, blocks,
    BLOCKS: tl.constexpr, IS_FIRST: tl.constexpr, WAYS: tl.constexpr,
):  # fmt: skip
    """Between which of these distances the last token lies that is kept; what lies within the nearer one is kept."""
    row = tl.program_id(0).to(tl.int64)
    if _is_cut(temperature, top_k, top_p, row):
        ends = _ends(bounds, row, IS_FIRST, WAYS)
        way, number = tl.arange(0, WAYS), tl.arange(0, BLOCKS)
        at = (row * blocks + number[:, None]) * WAYS + way[None, :]
        count = tl.load(counts + at, mask=(number < blocks)[:, None], other=0)  # [BLOCKS, WAYS]
        mass = tl.sum(tl.load(masses + at, mask=(number < blocks)[:, None], other=0.0).to(tl.float64), 0)
        many = tl.sum(count, 0)
        if IS_FIRST:
            tl.store(base + row * 3 + 2, tl.max(mass, 0))
        total = tl.load(base + row * 3 + 2)
        if IS_FIRST:
            total = tl.max(mass, 0)
        most, share = tl.load(top_k + row), tl.load(top_p + row).to(tl.float64)
        low, high = tl.full([], 0, tl.int32), tl.full([], WAYS - 1, tl.int32)
        least, largest = total, total  # what top-k leaves weighs between these
        if most > 0:
            high = tl.min(tl.where(many >= most, way, WAYS - 1), 0)
            low = tl.maximum(high - 1, 0)
            least = tl.sum(tl.where(way == low, mass, 0.0), 0)
            largest = tl.sum(tl.where(way == high, mass, 0.0), 0)
        if share < 1:
            nearest = tl.max(tl.where(mass < share * least, way, 0), 0)
            farthest = tl.min(tl.where(mass >= share * largest, way, WAYS - 1), 0)
            low = tl.where(most > 0, tl.minimum(low, nearest), nearest)
            high = tl.where(most > 0, tl.maximum(high, farthest), farthest)
        high = tl.maximum(high, low + 1)
        between = tl.sum(tl.where(way[None, :] == high, count, 0), 1) - tl.sum(
            tl.where(way[None, :] == low, count, 0), 1
        )
        tl.store(starts + row * blocks + number, tl.cumsum(between, 0) - between, mask=number < blocks)
        tl.store(bounds + row * 3, tl.sum(tl.where(way == low, ends, 0), 0))
        tl.store(bounds + row * 3 + 1, tl.sum(tl.where(way == high, ends, 0), 0))
        tl.store(bounds + row * 3 + 2, tl.sum(between, 0))
        tl.store(base + row * 3, tl.sum(tl.where(way == low, many, 0), 0).to(tl.float64))
        tl.store(base + row * 3 + 1, tl.sum(tl.where(way == low, mass, 0.0), 0))


@triton.jit
def _gather(
    scores, temperature, top_k, top_p, partials, bounds, starts, room, ids, size, blocks,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """The scores of one block that lie between the bounds, in order, where all of their row have room."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if _is_cut(temperature, top_k, top_p, row) & (tl.load(bounds + row * 3 + 2) <= ROOM):
        top, index, heated = _scores_of(scores, temperature, partials, row, size, blocks, BLOCK, BLOCKS)
        score = tl.load(scores + row * size + index, mask=index < size, other=float("-inf"))
        bits = _bits(heated, top)
        is_between = (bits > tl.load(bounds + row * 3)) & (bits <= tl.load(bounds + row * 3 + 1)) & (index < size)
        place = tl.load(starts + row * blocks + block) + tl.cumsum(is_between.to(tl.int32), 0) - 1
        tl.store(room + row * ROOM + place, score, mask=is_between)
        tl.store(ids + row * ROOM + place, index, mask=is_between)


@triton.jit
def _choose(
    scores, temperature, top_k, top_p, partials, bounds, base, room, ids, cuts, lasts, size, blocks,
    BLOCKS: tl.constexpr, ROOM: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """The distance of the last token that is kept, and the last of those at that distance."""
    row = tl.program_id(0).to(tl.int64)
    tl.store(cuts + row, float("inf"))
    tl.store(lasts + row, size)
    if _is_cut(temperature, top_k, top_p, row):
        heat, top = tl.load(temperature + row), _top(partials, row, blocks, BLOCKS)
        most, share = tl.load(top_k + row), tl.load(top_p + row)
        low, high = tl.load(bounds + row * 3), tl.load(bounds + row * 3 + 1)
        found = tl.load(bounds + row * 3 + 2)
        is_gathered = found <= ROOM
        source, length = scores + row * size, size
        if is_gathered:
            source, length = room + row * ROOM, found
        below, mass = tl.load(base + row * 3), tl.load(base + row * 3 + 1)
        total, cut, ties = tl.load(base + row * 3 + 2), high, size
        if most > 0:
            target = most.to(tl.float64)
            cut, ties = _reached(source, length, heat, top, low, high, below, target, size, False, TOGETHER)
            total = mass + _between(source, length, heat, top, low, cut - 1, True, TOGETHER)
            total += tl.exp(-_distance(cut)).to(tl.float64) * ties
        if share < 1:
            target = share.to(tl.float64) * total
            near, few = _reached(source, length, heat, top, low, cut, mass, target, size, True, TOGETHER)
            ties = tl.where(near < cut, few, tl.minimum(ties, few))
            cut = near
        place = _place(source, length, heat, top, cut, ties, TOGETHER)
        if is_gathered:
            place = tl.load(ids + row * ROOM + tl.maximum(place, 0))
        tl.store(cuts + row, _distance(cut))
        tl.store(lasts + row, place)


@triton.jit
def _distance(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _reached(source, length, heat, top, low, high, base, target, size, BY_MASS: tl.constexpr, TOGETHER: tl.constexpr):
    """The least distance within which tokens reach the target, and how many of those at it are needed."""
    first, before = low, base
    while high - low > 1:
        middle = low + (high - low) // 2
        weight = base + _between(source, length, heat, top, first, middle, BY_MASS, TOGETHER)
        is_reached = weight >= target
        before = tl.where(is_reached, before, weight)
        low, high = tl.where(is_reached, low, middle), tl.where(is_reached, middle, high)
    each = target * 0 + 1
    if BY_MASS:
        each = tl.exp(-_distance(high)).to(tl.float64)
    need = tl.where(each > 0, tl.ceil((target - before) / each), size)
    return high, tl.minimum(tl.maximum(need, 1), size).to(tl.int32)


@triton.jit
def _between(source, length, heat, top, low, high, BY_MASS: tl.constexpr, TOGETHER: tl.constexpr):
    """How many tokens lie beyond `low` and within `high`, or what they weigh."""
    inner = tl.arange(0, TOGETHER)
    total = tl.zeros([TOGETHER], tl.float64)
    for start in range(0, length, TOGETHER):
        score = divided(source, start + inner, length, heat)
        bits = _bits(score, top)
        weight = tl.full([TOGETHER], 1.0, tl.float32)
        if BY_MASS:
            weight = tl.exp(score - top)
        is_between = (bits > low) & (bits <= high) & (start + inner < length)
        total += tl.where(is_between, weight, 0.0).to(tl.float64)
    return tl.sum(total, 0)


@triton.jit
def _place(source, length, heat, top, cut, ties, TOGETHER: tl.constexpr):
    """Where the last one stands of the first so many at this distance."""
    inner = tl.arange(0, TOGETHER)
    last, seen = ties * 0 - 1, ties * 0
    for start in range(0, length, TOGETHER):
        index = start + inner
        is_tie = (_bits(divided(source, index, length, heat), top) == cut) & (index < length)
        is_kept = is_tie & (seen + tl.cumsum(is_tie.to(tl.int32), 0) <= ties)
        last = tl.maximum(last, tl.max(tl.where(is_kept, index, -1), 0))
        seen += tl.sum(is_tie.to(tl.int32), 0)
    return last


@triton.jit
def is_dropped(score, index, top, distance, last):
    """What lies beyond the cut; never what is no number, or nobody would see it."""
    return (top - score > distance) | ((top - score == distance) & (index > last))


@triton.jit
def _reweigh(
    scores, temperature, top_k, top_p, partials, cuts, lasts, size, blocks, count,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """One block as `_weigh` does, of what is kept alone."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if _is_cut(temperature, top_k, top_p, row):
        top, index, score = _scores_of(scores, temperature, partials, row, size, blocks, BLOCK, BLOCKS)
        score = tl.where(is_dropped(score, index, top, tl.load(cuts + row), tl.load(lasts + row)), float("-inf"), score)
        highest = tl.load(partials + row * blocks + block)  # of all: others read it meanwhile, so it stays
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        tl.store(partials + count + row * blocks + block, tl.sum(tl.exp(score - safe), 0))
