"""The order in which attention sums: one rule for trainer and engine, whatever else is computed beside it.

In bfloat16 a sum in another order is rounded otherwise now and then, and a few layers on everything is. Keys are
counted from the first of their sequence and taken in `STEP` at a time; `CHUNK` keys are summed from nothing, block by
block, and what chunks give is merged in float32, one after another. So chunks may be computed side by side (as in
Flash-Decoding, Dao et al. 2023) or by one program in turn, and the bits are the same. A chunk of which a query sees
nothing changes nothing.
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
def weighed(scores, highest, total, is_first):
    """One more block: what its keys weigh, what is left of its chunk's sums so far, the new highest and total."""
    highest, total = tl.where(is_first, -1e38, highest), tl.where(is_first, 0.0, total)
    higher = tl.maximum(highest, tl.max(scores, 1))
    weight = tl.exp2(scores - higher[:, None])
    fade = tl.exp2(highest - higher)
    return weight, fade[:, None], higher, total * fade + tl.sum(weight, 1)


@triton.jit
def merged(highest, total, result, other_highest, other_total, other_result):
    """The sums of chunks, and of the chunk that comes after them."""
    higher = tl.maximum(highest, other_highest)
    fade, share = tl.exp2(highest - higher), tl.exp2(other_highest - higher)
    total = total * fade + other_total * share
    return higher, total, result * fade[:, None] + other_result * share[:, None]
