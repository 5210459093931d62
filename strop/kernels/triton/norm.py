"""`strop.kernels.norm` in Triton: fused residual addition and RMSNorm."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels.norm import Pulls
from strop.kernels.triton.chain import chained, follow, release

# ROWS: tokens a program looks at together; more would not fit into registers
FORWARD = {"ROWS": 4, "num_warps": 4}
_FEW, _WIDE = 1024, 512  # fewer tokens of wider rows are looked at one by one, which sums them no otherwise
BACKWARD, _BACKWARD_WIDE, _WIDEST = {"ROWS": 2, "num_warps": 4}, {"ROWS": 1, "num_warps": 8}, 2048
PROGRAMS = 528  # of the backward pass, four for each multiprocessor: each sums its part of the weight's gradient


def forward(
    residual: Tensor,
    delta: Tensor | None,
    weight: Tensor,
    epsilon: float,
    dtype: torch.dtype,
    is_in_place: bool = False,
    offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    count, size = residual.shape
    state = residual if delta is None or is_in_place else torch.empty_like(residual)
    normed = torch.empty(count, size, dtype=dtype, device=residual.device)
    scale = torch.empty(count, dtype=torch.float32, device=residual.device)
    options = options_of(count, size)
    _forward[(triton.cdiv(count, options["ROWS"]),)](
        residual, delta, weight, state, normed, scale, count, epsilon,
        SIZE=size, WIDTH=triton.next_power_of_2(size), HAS_DELTA=delta is not None, OFFSET=offset, **options,
        **chained(count, residual.device),
    )  # fmt: skip
    return state, normed, scale


def options_of(count: int, size: int) -> dict[str, int]:
    """How a program looks at so many tokens forward."""
    return FORWARD | ({"ROWS": 1} if count < _FEW and size > _WIDE else {})


def backward(
    d_sum: Tensor | None, d_normed: Tensor, residual: Tensor, delta: Tensor | None, weight: Tensor, scale: Tensor,
    offset: float = 0.0,
) -> Pulls:  # fmt: skip
    count, size = residual.shape
    options = BACKWARD if size <= _WIDEST else _BACKWARD_WIDE  # two rows of more would not fit into registers
    programs = min(PROGRAMS, triton.cdiv(count, options["ROWS"]))
    d_residual, d_delta, normed = torch.empty_like(residual), torch.empty_like(d_normed), torch.empty_like(d_normed)
    partial = torch.empty(programs, size, dtype=torch.float32, device=residual.device)
    _backward[(programs,)](
        d_sum, d_normed, residual, delta, weight, scale, d_residual, d_delta, normed, partial, count,
        SIZE=size, WIDTH=triton.next_power_of_2(size),
        HAS_SUM=d_sum is not None, HAS_DELTA=delta is not None, OFFSET=offset, **options,
    )  # fmt: skip
    d_weight = torch.empty(size, dtype=torch.float32, device=residual.device)
    _total[(triton.cdiv(size, 16),)](partial, d_weight, programs, SIZE=size, COLUMNS=16, ROWS=128, num_warps=4)
    return Pulls(d_residual, d_delta, d_weight, normed)


@triton.jit
def _forward(
    residual, delta, weight, state, normed, scale, count, epsilon,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, HAS_DELTA: tl.constexpr, OFFSET: tl.constexpr,
    IS_CHAINED: tl.constexpr,
):  # fmt: skip
    release(IS_CHAINED)
    follow(IS_CHAINED)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    _, inverse = stored(residual, delta, weight, state, normed, rows, count, epsilon, SIZE, WIDTH, HAS_DELTA, OFFSET)
    tl.store(scale + rows, inverse, rows < count)


@triton.jit
def stored(
    residual, delta, weight, state, normed, rows, count, epsilon,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, HAS_DELTA: tl.constexpr, OFFSET: tl.constexpr,
):  # fmt: skip
    """The sum of these rows and its normalised state, as they are stored: that [ROWS, WIDTH], and its factor [ROWS]."""
    columns = tl.arange(0, WIDTH)
    mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
    at = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
    x = tl.load(residual + at, mask, 0.0)
    if HAS_DELTA:
        x += tl.load(delta + at, mask, 0.0).to(tl.float32)
        tl.store(state + at, x, mask)
    inverse = tl.rsqrt(tl.sum(x * x, 1) / SIZE + epsilon)
    kind = normed.dtype.element_ty
    factor = tl.load(weight + columns, columns < SIZE, 0.0).to(kind).to(tl.float32) + OFFSET
    found = (x * inverse[:, None] * factor[None, :]).to(kind)
    tl.store(normed + at, found, mask)
    return found, inverse


@triton.jit
def _backward(
    d_sum, d_normed, residual, delta, weight, scale, d_residual, d_delta, normed, partial, count,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, HAS_SUM: tl.constexpr, HAS_DELTA: tl.constexpr,
    OFFSET: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, WIDTH)
    kind = normed.dtype.element_ty
    factor = tl.load(weight + columns, columns < SIZE, 0.0).to(kind).to(tl.float32) + OFFSET
    total = tl.zeros([WIDTH], tl.float32)
    for start in range(program * ROWS, count, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
        at = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
        inverse = tl.load(scale + rows, rows < count, 0.0)[:, None]
        state = tl.load(residual + at, mask, 0.0)
        if HAS_DELTA:
            state += tl.load(delta + at, mask, 0.0).to(tl.float32)
        normal = state * inverse
        pulled = tl.load(d_normed + at, mask, 0.0).to(tl.float32)
        weighted = pulled * factor[None, :]
        gradient = (weighted - normal * (tl.sum(weighted * normal, 1) / SIZE)[:, None]) * inverse
        if HAS_SUM:
            gradient += tl.load(d_sum + at, mask, 0.0)
        tl.store(d_residual + at, gradient, mask)
        tl.store(d_delta + at, gradient.to(kind), mask)
        tl.store(normed + at, (normal * factor[None, :]).to(kind), mask)
        total += tl.sum(pulled * normal, 0)
    tl.store(partial + program * SIZE + columns, total, columns < SIZE)


@triton.jit
def _total(partial, total, count, SIZE: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    found = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, count, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
        found += tl.load(partial + rows[:, None] * SIZE + columns[None, :], mask, 0.0)
    tl.store(total + columns, tl.sum(found, 0), columns < SIZE)
