"""Order of summation of attention: one rule for trainer and engine, whatever else is in the batch.

In bfloat16 a sum in another order may round differently, and a few layers on everything does. Keys are counted from the
first of their sequence and read in steps of `STEP`; chunks of `CHUNK` keys are summed from zero, and their results are
merged in float32, one after another. So chunks may be computed in parallel (as in Flash-Decoding, Dao et al. 2023) or
in turn with the same bits. A chunk without a visible key changes nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl

STEP = 64  # keys looked at together
CHUNK = 256  # keys summed from nothing; a multiple of STEP


@triton.jit
def nothing(ROWS: tl.constexpr, SIZE: tl.constexpr):
    """The sums of no keys: highest score, total weight, weighted values; finite, as a query may see none of a block."""
    return tl.full([ROWS], -1e38, tl.float32), tl.zeros([ROWS], tl.float32), tl.zeros([ROWS, SIZE], tl.float32)


@triton.jit
def scored(products, factor, CAP: tl.constexpr):
    """Scores in base 2, bent below the cap where there is one."""
    scores = products * factor
    if CAP > 0:
        scores = CAP * (2 * tl.sigmoid(scores * (2 / CAP)) - 1)  # tanh
    return scores


@triton.jit
def weighed(scores, chunk, is_first):
    """One more block: what its keys weigh, what is left of its chunk's sums so far, the new highest and total."""
    highest, total = tl.where(is_first, -1e38, chunk[0]), tl.where(is_first, 0.0, chunk[1])
    higher = tl.maximum(highest, tl.max(scores, 1))
    weight = tl.exp2(scores - higher[:, None])
    fade = tl.exp2(highest - higher)
    return weight, fade[:, None], higher, total * fade + tl.sum(weight, 1)


@triton.jit
def added(done, chunk, block, value, is_first, PRECISION: tl.constexpr):
    """The sums of chunks that are done and of the one at hand, with a block that was `weighed` and its values.

    Where the block is the first of another chunk, the one before is done. That is seen to here, after the values were
    asked for, where the last product is waited for anyway.
    """
    weight, fade, highest, total = block
    result = chunk[2]
    if is_first:
        done = merged(done, chunk)
        result = tl.zeros_like(result)
    else:
        result = result * fade
    return done, (highest, total, tl.dot(weight.to(value.dtype), value, result, input_precision=PRECISION))


@triton.jit
def merged(done, chunk):
    """The sums of chunks, and of the chunk that comes after them."""
    higher = tl.maximum(done[0], chunk[0])
    fade, share = tl.exp2(done[0] - higher), tl.exp2(chunk[0] - higher)
    total = done[1] * fade + chunk[1] * share
    return higher, total, done[2] * fade[:, None] + chunk[2] * share[:, None]
