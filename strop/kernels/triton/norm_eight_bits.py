"""Fused norm and FP8 encoding in one kernel, with the bits of `norm` followed by `eight_bits.encode`.

The normalized state is stored as well, though nothing reads it: loads and stores decide how many numbers of a row a
thread has, and so the order of the norm's sums. Codes are stored as blocks, another shape, and do not affect it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.eight_bits import BLOCK, Eights
from strop.kernels.triton import norm
from strop.kernels.triton.chain import chained, follow, release
from strop.kernels.triton.eight_bits import coded, encode, scale_of
from strop.kernels.triton.norm import stored

_BLOCK = tl.constexpr(BLOCK)


def encode_norm(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype, offset: float = 0.0
) -> Eights:
    """`residual` [T, H] gets the delta in place, where there is one."""
    count, size = residual.shape
    if size < BLOCK:  # the sums of rows that short would lie otherwise in a whole block
        return encode(norm.forward(residual, delta, weight, epsilon, dtype, is_in_place=True, offset=offset)[1])
    found, normed = Eights.empty(count, size, residual.device), torch.empty_like(residual, dtype=dtype)
    options = norm.options_of(count, size)
    _encode_norm[(triton.cdiv(count, options["ROWS"]),)](
        residual, delta, weight, normed, *found[:2], count, epsilon,
        SIZE=size, WIDTH=triton.next_power_of_2(size), HAS_DELTA=delta is not None, OFFSET=offset, **options,
        **chained(count, residual.device),
    )  # fmt: skip
    return found


@triton.jit
def _encode_norm(
    residual, delta, weight, normed, codes, scales, count, epsilon,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, HAS_DELTA: tl.constexpr, OFFSET: tl.constexpr,
    IS_CHAINED: tl.constexpr,
):  # fmt: skip
    release(IS_CHAINED)
    follow(IS_CHAINED)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    found, _ = stored(residual, delta, weight, residual, normed, rows, count, epsilon, SIZE, WIDTH, HAS_DELTA, OFFSET)
    BLOCKS: tl.constexpr = (SIZE + _BLOCK - 1) // _BLOCK
    x = tl.reshape(found.to(tl.float32), [ROWS, WIDTH // _BLOCK, _BLOCK])
    scale = scale_of(tl.max(tl.abs(x), 2))
    blocks, places = tl.arange(0, WIDTH // _BLOCK), tl.arange(0, _BLOCK)
    mask = (rows < count)[:, None] & (blocks < BLOCKS)[None, :]
    at = rows.to(tl.int64)[:, None] * BLOCKS + blocks[None, :]
    tl.store(
        codes + at[:, :, None] * _BLOCK + places[None, None, :], coded(x, scale[:, :, None], codes), mask[:, :, None]
    )
    tl.store(scales + blocks[None, :] * count + rows[:, None], tl.div_rn(1.0, scale), mask)
