"""The draw of a decode step as Triton kernels, top-k and top-p included: what `kernels.draw` does, without a sort.

Rows without a limit are weighed in blocks by many programs. A row with one is cut by a program of its own: how far the
last token that is kept lies below the highest is found by looking at several distances at once, whose bits order as
they do, first over the whole row and then over the few scores that may still be it. No step waits for the host, so rows
with and without limits share one captured step.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.draw import Draws

_VOCABULARY = 2048  # scores of one program
_ROOM = 8192  # scores of a row that are kept apart while its cut is looked for
_WAYS = 8  # distances looked at together
_CUT = {"LOOK": 4096, "num_warps": 16}  # scores looked at together


def draw(scores: Tensor, how: Draws, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens and their logprobs [T]."""
    rows, size = scores.shape
    blocks = triton.cdiv(size, _VOCABULARY)
    figures = scores.new_empty(2, rows, blocks)
    likeliest = scores.new_empty(rows, blocks, dtype=torch.int32)
    cuts, lasts = scores.new_empty(rows), scores.new_empty(rows, dtype=torch.int32)
    room = scores.new_empty(rows, _ROOM)
    tokens, logprobs = scores.new_empty(rows, dtype=torch.int64), scores.new_empty(rows)
    shape = {"BLOCK": _VOCABULARY, "BLOCKS": triton.next_power_of_2(blocks)}
    count = rows * blocks
    _weigh[(rows, blocks)](scores, how.temperature, figures, likeliest, size, count, BLOCK=_VOCABULARY, num_warps=4)
    _cut[(rows,)](
        scores, how.temperature, how.top_k, how.top_p, figures, cuts, lasts, room, size, blocks, count,
        **shape, ROOM=_ROOM, WAYS=_WAYS, **_CUT,
    )  # fmt: skip
    _draw[(rows,)](
        scores, how.temperature, how.keys, positions, figures, likeliest, cuts, lasts, tokens, logprobs, size, blocks,
        count, **shape, num_warps=4,
    )  # fmt: skip
    return tokens, logprobs


@triton.jit
def _weigh(scores, temperature, figures, likeliest, size, count, BLOCK: tl.constexpr):
    """Of one block of a row: its highest score, what the others weigh relative to it, and where it stands."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    index = block * BLOCK + tl.arange(0, BLOCK)
    score = _scores(scores + row * size, index, size, tl.load(temperature + row))
    highest, place = tl.max(score, 0, return_indices=True)
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    target = row * tl.num_programs(1) + block
    tl.store(figures + target, highest)
    tl.store(figures + count + target, tl.sum(tl.exp(score - safe), 0))
    tl.store(likeliest + target, place + block * BLOCK)


@triton.jit
def _scores(row, index, size, heat):
    score = tl.load(row + index, mask=index < size, other=float("-inf"))
    return tl.div_rn(score, tl.where(heat > 0, heat, 1.0) + tl.zeros_like(score))  # rounded as torch does


@triton.jit
def _bits(score, top):
    """How far below the highest, as a number that orders alike; no number at all lies beyond infinity."""
    return (top - score).to(tl.int32, bitcast=True)


@triton.jit
def _cut(
    scores, temperature, top_k, top_p, figures, cuts, lasts, room, size, blocks, count,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr, ROOM: tl.constexpr, WAYS: tl.constexpr, LOOK: tl.constexpr,
):  # fmt: skip
    """How far below the highest the last token lies that is kept, and the last such one; weighs its blocks anew."""
    row = tl.program_id(0).to(tl.int64)
    heat, most, share = tl.load(temperature + row), tl.load(top_k + row), tl.load(top_p + row)
    tl.store(cuts + row, float("inf"))
    tl.store(lasts + row, size)
    if (heat > 0) & ((most > 0) | (share < 1)):
        own, apart = scores + row * size, room + row * ROOM
        number = tl.arange(0, BLOCKS)
        exists = number < blocks
        highest = tl.load(figures + row * blocks + number, mask=exists, other=float("-inf"))
        weight = tl.load(figures + count + row * blocks + number, mask=exists, other=0.0)
        top = tl.max(highest, 0)
        total = tl.sum(tl.where(exists, weight * tl.exp(highest - top), 0.0).to(tl.float64), 0)
        infinite = tl.full([], 0x7F800000, tl.int64)
        cut, ties = infinite, size
        if most > 0:
            cut, ties = _reached(own, apart, size, heat, top, most.to(tl.float64), infinite, False, ROOM, WAYS, LOOK)
        if share < 1:
            if most > 0:
                total = _mass(own, size, heat, top, cut, ties, LOOK)
            target = share.to(tl.float64) * total
            lower, fewer = _reached(own, apart, size, heat, top, target, cut, True, ROOM, WAYS, LOOK)
            ties = tl.where(lower < cut, fewer, tl.minimum(ties, fewer))
            cut = lower
        last = _reweigh(own, size, heat, top, cut, ties, figures + row * blocks, count, blocks, BLOCK)
        tl.store(cuts + row, cut.to(tl.int32).to(tl.float32, bitcast=True))
        tl.store(lasts + row, last)


@triton.jit
def _reached(
    scores, room, size, heat, top, target, high,
    BY_MASS: tl.constexpr, ROOM: tl.constexpr, WAYS: tl.constexpr, LOOK: tl.constexpr,
):  # fmt: skip
    """The least distance within which tokens reach the target, and how many of those at it are needed.

    Those up to `low` do not reach it and those up to `high` do; what lies between is looked at again.
    """
    way, inner = tl.arange(0, WAYS).to(tl.int64), tl.arange(0, LOOK)
    low = high * 0 - 1
    base = target * 0
    ground = base  # what lies below all that is looked at weighs so much
    kept = high.to(tl.int32) * 0 - 1  # scores kept apart, once they have room
    ends = 0x3D800000 + way * (10 << 23) // (WAYS - 1)  # at first 1/16 to 64, as likelihoods of models lie
    while high - low > 1:
        total = tl.zeros([WAYS, LOOK], tl.float32)
        if kept < 0:
            found = kept * 0
            ground = base
            for start in range(0, size, LOOK):
                score = _scores(scores, start + inner, size, heat)
                bits = _bits(score, top)
                is_open = (bits > low) & (bits <= high)
                total += _within(bits, ends, is_open, score - top, BY_MASS)
                place = found + tl.cumsum(is_open.to(tl.int32), 0) - 1
                tl.store(room + place, score, mask=is_open & (place < ROOM))
                found += tl.sum(is_open.to(tl.int32), 0)
            kept = tl.where(found <= ROOM, found, kept)
            tl.debug_barrier()  # what one thread stored another one reads
        else:
            for start in range(0, kept, LOOK):
                score = tl.load(room + start + inner, mask=start + inner < kept, other=float("-inf"))
                total += _within(_bits(score, top), ends, start + inner < kept, score - top, BY_MASS)
        weights = ground + tl.sum(total.to(tl.float64), 1)
        is_reached = (weights >= target) | (ends >= high)
        base = tl.maximum(base, tl.max(tl.where(is_reached, 0.0, weights), 0))
        low, high = (
            tl.maximum(low, tl.max(tl.where(is_reached, -1, ends), 0)),
            tl.minimum(high, tl.min(tl.where(is_reached, ends, high), 0)),
        )
        ends = low + ((high - low) * (way + 1) + WAYS - 1) // WAYS
    weight = target * 0 + 1
    if BY_MASS:
        weight = tl.exp(-high.to(tl.int32).to(tl.float32, bitcast=True)).to(tl.float64)
    need = tl.where(weight > 0, tl.ceil((target - base) / weight), size)
    return high, tl.minimum(tl.maximum(need, 1), size).to(tl.int32)


@triton.jit
def _within(bits, ends, counts, power, BY_MASS: tl.constexpr):
    """[WAYS, LOOK]: what each score adds to what lies within each distance."""
    weight = tl.where(counts, 1.0, 0.0)
    if BY_MASS:
        weight = tl.where(counts, tl.exp(power), 0.0)
    return tl.where(bits[None, :] <= ends[:, None], weight[None, :], 0.0)


@triton.jit
def _mass(scores, size, heat, top, cut, ties, LOOK: tl.constexpr):
    """Of the tokens that are kept."""
    inner = tl.arange(0, LOOK)
    total = tl.zeros([LOOK], tl.float32)
    for start in range(0, size, LOOK):
        score = _scores(scores, start + inner, size, heat)
        total += tl.where(_bits(score, top) < cut, tl.exp(score - top), 0.0)
    at_the_cut = tl.exp(-cut.to(tl.int32).to(tl.float32, bitcast=True)).to(tl.float64) * ties
    return tl.sum(total.to(tl.float64), 0) + at_the_cut


@triton.jit
def _reweigh(scores, size, heat, top, cut, ties, figures, count, blocks, BLOCK: tl.constexpr):
    """Every block as `_weigh` does, of what is kept alone; the place of the last kept one of those at the cut."""
    inner = tl.arange(0, BLOCK)
    last, seen = ties * 0 - 1, ties * 0
    for block in range(0, blocks):
        index = block * BLOCK + inner
        score = _scores(scores, index, size, heat)
        bits = _bits(score, top)
        is_tie = (bits == cut) & (index < size)
        is_last = is_tie & (seen + tl.cumsum(is_tie.to(tl.int32), 0) <= ties)
        seen += tl.sum(is_tie.to(tl.int32), 0)
        last = tl.maximum(last, tl.max(tl.where(is_last, index, -1), 0))
        is_number = score == score
        kept = tl.where((bits < cut) | is_last | (is_number == 0), score, float("-inf"))
        highest = tl.max(kept, 0)
        safe = tl.where(highest == float("-inf"), 0.0, highest)
        tl.store(figures + block, highest)
        tl.store(figures + count + block, tl.sum(tl.exp(kept - safe), 0))
    return last


@triton.jit
def _mix(bits):
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB
    return bits ^ (bits >> 31)


@triton.jit
def _draw(
    scores, temperature, keys, positions, figures, likeliest, cuts, lasts, tokens, logprobs, size, blocks, count,
    BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    heat = tl.load(temperature + row)
    number = tl.arange(0, BLOCKS)
    exists = number < blocks
    highest = tl.load(figures + row * blocks + number, mask=exists, other=float("-inf"))
    weight = tl.load(figures + count + row * blocks + number, mask=exists, other=0.0)
    top, best = tl.max(highest, 0, return_indices=True)
    mass = (weight * tl.exp(highest - top)).to(tl.float64)
    mass = tl.where(exists, mass, 0.0)
    total = tl.sum(mass, 0)
    # the stream of this key at this position
    stream = _mix(tl.load(keys + row).to(tl.uint64, bitcast=True) + 0x9E3779B97F4A7C15)
    position = tl.load(positions + row).to(tl.uint64)
    bits = _mix(stream + (position + 1) * 0x9E3779B97F4A7C15)
    chance = (bits >> 11).to(tl.float64) * 1.1102230246251565e-16
    target = chance * 0.9999999999999998 * total
    cumulated = tl.cumsum(mass, 0)
    block = tl.minimum(tl.sum(((cumulated <= target) & exists).to(tl.int32), 0), blocks - 1)
    before = tl.sum(tl.where(number < block, mass, 0.0), 0)
    inner = tl.arange(0, BLOCK)
    index = block * BLOCK + inner
    score = _scores(scores + row * size, index, size, heat)
    cut, below = tl.load(cuts + row), top - score
    is_dropped = (below > cut) | ((below == cut) & (index > tl.load(lasts + row)))
    part = tl.where(is_dropped, 0.0, tl.exp(score - top)).to(tl.float64)
    passed = tl.sum((before + tl.cumsum(part, 0) <= target).to(tl.int32), 0)
    last = tl.max(tl.where(part > 0, inner, 0), 0)  # sums in another order may end a hair before the target
    passed = tl.minimum(passed, last)
    chosen = tl.sum(tl.where(inner == passed, score, 0.0), 0)
    logprob = chosen - (top + tl.log(total).to(tl.float32))
    greedy = tl.load(likeliest + row * blocks + best)
    is_greedy = heat == 0
    tl.store(tokens + row, tl.where(is_greedy, greedy, block * BLOCK + passed).to(tl.int64))
    tl.store(logprobs + row, tl.where(is_greedy & (total == total), 0.0, logprob))
