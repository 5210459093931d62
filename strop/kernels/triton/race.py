"""`strop.kernels.sampling.exponential_race` as Triton kernels: the first token of each block, then of each row.

Without limits, one pass over the scores computes probabilities and times; with limits, truncation comes first.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.sampling.sample_token import Draws
from strop.kernels.triton.cut import cut, divided, is_dropped
from strop.kernels.triton.draw import VOCABULARY, stream_of, weigh, weighed_block


def race(scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
    """Tokens and their logprobs [T]."""
    rows, size = scores.shape
    blocks = triton.cdiv(size, VOCABULARY)
    partials, firsts = scores.new_empty(2, rows, blocks), scores.new_empty(2, rows, blocks)
    likeliest, places = (scores.new_empty(rows, blocks, dtype=torch.int32) for _ in "ab")
    tokens, logprobs = scores.new_empty(rows, dtype=torch.int64), scores.new_empty(rows)
    cuts, lasts = logprobs, tokens  # or never read
    if is_truncated:
        weigh(scores, how, partials, likeliest)
        cuts, lasts = cut(scores, how, partials, VOCABULARY)
    shape = {"BLOCK": VOCABULARY, "BLOCKS": triton.next_power_of_2(blocks), "num_warps": 4}
    _run[(rows, blocks)](
        scores, how.temperature, how.keys, positions, cuts, lasts, partials, likeliest, firsts, places, size,
        rows * blocks, IS_CUT=is_truncated, **shape,
    )  # fmt: skip
    _finish[(rows,)](
        how.temperature, partials, likeliest, firsts, places, tokens, logprobs, size, blocks, rows * blocks,
        BLOCKS=shape["BLOCKS"], num_warps=1,
    )  # fmt: skip
    return tokens, logprobs


@triton.jit
def _stirred(bits):
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def _time(bits):
    """-log(1 - (bits + 0.5) / 2^32), exact to a few units in the last place, small times included."""
    share = bits.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    ratio = share / (2.0 - share)
    square = ratio * ratio
    sums = 1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9 + square * (1 / 11 + square * (1 / 13)))))
    short = 2.0 * ratio * (1.0 + square * sums)
    rest = (bits ^ 0xFFFFFFFF).to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    return tl.where(share < 0.5, short, -tl.log(rest))


@triton.jit
def _run(
    scores, temperature, keys, positions, cuts, lasts, partials, likeliest, firsts, places, size, count,
    IS_CUT: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Of one block of a row: who is first, when, and with which score."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    inner = tl.arange(0, BLOCK)
    index = block * BLOCK + inner
    score = divided(scores + row * size, index, size, tl.load(temperature + row))
    target = row * tl.num_programs(1) + block
    kept = score
    if IS_CUT:
        number = tl.arange(0, BLOCKS)
        exists = number < tl.num_programs(1)
        top = tl.max(tl.load(partials + row * tl.num_programs(1) + number, mask=exists, other=float("-inf")), 0)
        is_gone = is_dropped(score, index, top, tl.load(cuts + row), tl.load(lasts + row))
        kept = tl.where(is_gone, float("-inf"), score)
    else:
        weighed_block(score, partials, likeliest, target, count, block * BLOCK)
    stream = stream_of(keys, positions, row)
    bits = _stirred(_stirred(index.to(tl.uint32) + stream.to(tl.uint32)) ^ (stream >> 32).to(tl.uint32))
    lead, place = tl.max(kept - tl.log(_time(bits)), 0, return_indices=True)
    tl.store(firsts + target, lead)
    tl.store(firsts + count + target, tl.sum(tl.where(inner == place, kept, 0.0), 0))
    tl.store(places + target, place + block * BLOCK)


@triton.jit
def _finish(
    temperature, partials, likeliest, firsts, places, tokens, logprobs, size, blocks, count, BLOCKS: tl.constexpr
):
    row, number = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCKS)
    exists, at = number < blocks, row * blocks + number
    highest = tl.load(partials + at, mask=exists, other=float("-inf"))
    weight = tl.load(partials + count + at, mask=exists, other=0.0)
    top, best = tl.max(highest, 0, return_indices=True)
    total = tl.sum(tl.where(exists, (weight * tl.exp(highest - top)).to(tl.float64), 0.0), 0)
    _, first = tl.max(tl.load(firsts + at, mask=exists, other=float("-inf")), 0, return_indices=True)
    # in a row without a number the padding wins; what is drawn must stay a token until the host has seen it
    first, best = tl.minimum(first, blocks - 1), tl.minimum(best, blocks - 1)
    logprob = tl.load(firsts + count + row * blocks + first) - top - tl.log(total).to(tl.float32)
    is_greedy = tl.load(temperature + row) == 0
    chosen = tl.where(is_greedy, tl.load(likeliest + row * blocks + best), tl.load(places + row * blocks + first))
    tl.store(tokens + row, tl.minimum(chosen, size - 1).to(tl.int64))
    tl.store(logprobs + row, tl.where(is_greedy & (total == total), 0.0, logprob))
