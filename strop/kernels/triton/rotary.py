"""Rotary embedding of queries and keys, and its inverse, in Triton."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_ROWS = 4  # tokens a program looks at together


def rotate(fused: Tensor, cosine: Tensor, sine: Tensor, count: int, size: int, is_back: bool) -> None:
    """The first `count` heads of fused [T, W], in place."""
    tokens, width = fused.shape
    _rotate[(triton.cdiv(tokens, _ROWS),)](
        fused, cosine, sine, tokens, width,
        HEADS=count, HEADS_UP=triton.next_power_of_2(count), HALF=size // 2,
        HALF_UP=triton.next_power_of_2(size // 2), ROWS=_ROWS, IS_BACK=is_back, num_warps=4,
        enable_fp_fusion=False,  # an engine turns alike in a kernel of its own
    )  # fmt: skip


@triton.jit
def _rotate(
    fused, cosine, sine, tokens, width,
    HEADS: tl.constexpr, HEADS_UP: tl.constexpr, HALF: tl.constexpr, HALF_UP: tl.constexpr, ROWS: tl.constexpr,
    IS_BACK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    half = tl.arange(0, HALF_UP)
    heads = tl.arange(0, HEADS_UP)
    is_row = rows < tokens
    angle = rows[:, None] * HALF + half[None, :]
    is_angle = is_row[:, None] & (half < HALF)[None, :]
    turn = tl.load(cosine + angle, is_angle, 0.0)[:, None, :]
    lift = tl.load(sine + angle, is_angle, 0.0)[:, None, :]
    if IS_BACK:
        lift = -lift
    at = rows.to(tl.int64)[:, None, None] * width + heads[None, :, None] * (2 * HALF) + half[None, None, :]
    mask = is_row[:, None, None] & (heads < HEADS)[None, :, None] & (half < HALF)[None, None, :]
    first = tl.load(fused + at, mask, 0.0).to(tl.float32)
    second = tl.load(fused + at + HALF, mask, 0.0).to(tl.float32)
    tl.store(fused + at, (first * turn - second * lift).to(fused.dtype.element_ty), mask)
    tl.store(fused + at + HALF, (second * turn + first * lift).to(fused.dtype.element_ty), mask)
