"""Token sampling in Triton, for use in a captured step; equals `kernels.sampling.sample_token`.

Many programs sum blocks of a row, and one program per row finds the block and the token in it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.sampling.sample_token import Draws
from strop.kernels.triton.cut import cut, divided, is_dropped

VOCABULARY = 2048  # scores of one program


def draw(scores: Tensor, how: Draws, positions: Tensor, is_truncated: bool) -> tuple[Tensor, Tensor]:
    """Tokens and their logprobs [T]."""
    rows, size = scores.shape
    blocks = triton.cdiv(size, VOCABULARY)
    partials = scores.new_empty(2, rows, blocks)
    likeliest = scores.new_empty(rows, blocks, dtype=torch.int32)
    tokens, logprobs = scores.new_empty(rows, dtype=torch.int64), scores.new_empty(rows)
    count = rows * blocks
    weigh(scores, how, partials, likeliest)
    cuts, lasts = cut(scores, how, partials, VOCABULARY) if is_truncated else (logprobs, tokens)  # or never read
    _draw[(rows,)](
        scores, how.temperature, how.keys, positions, partials, likeliest, cuts, lasts, tokens, logprobs, size, blocks,
        count, IS_CUT=is_truncated, BLOCK=VOCABULARY, BLOCKS=triton.next_power_of_2(blocks), num_warps=4,
    )  # fmt: skip
    return tokens, logprobs


def weigh(scores: Tensor, how: Draws, partials: Tensor, likeliest: Tensor) -> None:
    """Blocks of rows, into partials [2, T, blocks] and likeliest [T, blocks]."""
    (rows, size), blocks = scores.shape, partials.shape[2]
    _weigh[(rows, blocks)](
        scores, how.temperature, partials, likeliest, size, rows * blocks, BLOCK=VOCABULARY, num_warps=4
    )


@triton.jit
def _weigh(scores, temperature, partials, likeliest, size, count, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    index = block * BLOCK + tl.arange(0, BLOCK)
    score = divided(scores + row * size, index, size, tl.load(temperature + row))
    weighed_block(score, partials, likeliest, row * tl.num_programs(1) + block, count, block * BLOCK)


@triton.jit
def weighed_block(score, partials, likeliest, target, count, first):
    """Of one block of a row: its highest score, what the others weigh relative to it, and where it stands."""
    highest, place = tl.max(score, 0, return_indices=True)
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    tl.store(partials + target, highest)
    tl.store(partials + count + target, tl.sum(tl.exp(score - safe), 0))
    tl.store(likeliest + target, place + first)


@triton.jit
def stream_of(keys, positions, row):
    """64 random bits of this row's key at its position."""
    stream = _mix(tl.load(keys + row).to(tl.uint64, bitcast=True) + 0x9E3779B97F4A7C15)
    return _mix(stream + (tl.load(positions + row).to(tl.uint64) + 1) * 0x9E3779B97F4A7C15)


@triton.jit
def _mix(bits):
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB
    return bits ^ (bits >> 31)


@triton.jit
def _draw(
    scores, temperature, keys, positions, partials, likeliest, cuts, lasts, tokens, logprobs, size, blocks, count,
    IS_CUT: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    heat = tl.load(temperature + row)
    number = tl.arange(0, BLOCKS)
    exists = number < blocks
    highest = tl.load(partials + row * blocks + number, mask=exists, other=float("-inf"))
    weight = tl.load(partials + count + row * blocks + number, mask=exists, other=0.0)
    top, best = tl.max(highest, 0, return_indices=True)
    mass = (weight * tl.exp(highest - top)).to(tl.float64)
    mass = tl.where(exists, mass, 0.0)
    total = tl.sum(mass, 0)
    probability = (stream_of(keys, positions, row) >> 11).to(tl.float64) * 1.1102230246251565e-16
    target = probability * 0.9999999999999998 * total
    cumulated = tl.cumsum(mass, 0)
    block = tl.minimum(tl.sum(((cumulated <= target) & exists).to(tl.int32), 0), blocks - 1)
    before = tl.sum(tl.where(number < block, mass, 0.0), 0)
    inner = tl.arange(0, BLOCK)
    index = block * BLOCK + inner
    score = divided(scores + row * size, index, size, heat)
    part = tl.exp(score - top).to(tl.float64)
    if IS_CUT:
        part = tl.where(is_dropped(score, index, top, tl.load(cuts + row), tl.load(lasts + row)), 0.0, part)
    passed = tl.sum((before + tl.cumsum(part, 0) <= target).to(tl.int32), 0)
    last = tl.max(tl.where(part > 0, inner, 0), 0)  # sums in another order may end a hair before the target
    passed = tl.minimum(passed, last)
    chosen = tl.sum(tl.where(inner == passed, score, 0.0), 0)
    logprob = chosen - top - tl.log(total).to(tl.float32)
    # in a row without a number the padding wins; what is drawn must stay a token until the host has seen it
    greedy = tl.minimum(tl.load(likeliest + row * blocks + tl.minimum(best, blocks - 1)), size - 1)
    is_greedy = heat == 0
    tl.store(tokens + row, tl.where(is_greedy, greedy, block * BLOCK + passed).to(tl.int64))
    tl.store(logprobs + row, tl.where(is_greedy & (total == total), 0.0, logprob))
