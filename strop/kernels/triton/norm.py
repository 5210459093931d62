"""`strop.kernels.norm` in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS, _ROWS_BACK = 4, 2  # tokens a program looks at together; more would not fit into registers
_PROGRAMS = 1024  # of the backward pass: each sums its own part of the weight's gradient


def forward(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    count, size = residual.shape
    state = residual if delta is None else torch.empty_like(residual)
    normed = torch.empty(count, size, dtype=dtype, device=residual.device)
    scale = torch.empty(count, dtype=torch.float32, device=residual.device)
    _forward[(triton.cdiv(count, _ROWS),)](
        residual, delta, weight, state, normed, scale, count, epsilon,
        SIZE=size, WIDTH=triton.next_power_of_2(size), ROWS=_ROWS, HAS_DELTA=delta is not None, num_warps=4,
    )  # fmt: skip
    return state, normed, scale


def backward(
    d_state: Tensor | None,
    d_normed: Tensor,
    state: Tensor,
    weight: Tensor,
    scale: Tensor,
    delta_dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    count, size = state.shape
    programs = min(_PROGRAMS, triton.cdiv(count, _ROWS_BACK))
    d_residual = torch.empty_like(state)
    d_delta = None if delta_dtype is None else torch.empty_like(state, dtype=delta_dtype)
    partial = torch.empty(programs, size, dtype=torch.float32, device=state.device)
    _backward[(programs,)](
        d_state, d_normed.contiguous(), state, weight, scale, d_residual, d_delta, partial, count,
        SIZE=size, WIDTH=triton.next_power_of_2(size), ROWS=_ROWS_BACK,
        HAS_STATE=d_state is not None, HAS_DELTA=d_delta is not None, num_warps=4,
    )  # fmt: skip
    return d_residual, d_delta, partial.sum(0).to(weight.dtype)


@triton.jit
def _forward(
    residual, delta, weight, state, normed, scale, count, epsilon,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, HAS_DELTA: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
    at = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
    x = tl.load(residual + at, mask, 0.0)
    if HAS_DELTA:
        x += tl.load(delta + at, mask, 0.0).to(tl.float32)
        tl.store(state + at, x, mask)
    inverse = tl.rsqrt(tl.sum(x * x, 1) / SIZE + epsilon)
    factor = tl.load(weight + columns, columns < SIZE, 0.0).to(normed.dtype.element_ty).to(tl.float32)
    tl.store(normed + at, (x * inverse[:, None] * factor[None, :]).to(normed.dtype.element_ty), mask)
    tl.store(scale + rows, inverse, rows < count)


@triton.jit
def _backward(
    d_state, d_normed, state, weight, scale, d_residual, d_delta, partial, count,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, HAS_STATE: tl.constexpr, HAS_DELTA: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, WIDTH)
    factor = tl.load(weight + columns, columns < SIZE, 0.0).to(d_normed.dtype.element_ty).to(tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    for start in range(program * ROWS, count, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
        at = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
        inverse = tl.load(scale + rows, rows < count, 0.0)[:, None]
        normal = tl.load(state + at, mask, 0.0) * inverse
        pulled = tl.load(d_normed + at, mask, 0.0).to(tl.float32)
        weighted = pulled * factor[None, :]
        gradient = (weighted - normal * (tl.sum(weighted * normal, 1) / SIZE)[:, None]) * inverse
        if HAS_STATE:
            gradient += tl.load(d_state + at, mask, 0.0)
        tl.store(d_residual + at, gradient, mask)
        if HAS_DELTA:
            tl.store(d_delta + at, gradient.to(d_delta.dtype.element_ty), mask)
        total += tl.sum(pulled * normal, 0)
    tl.store(partial + program * SIZE + columns, total, columns < SIZE)
