"""`strop.kernels.swiglu` in Triton: fused SwiGLU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from strop.kernels import swiglu

_ROWS, _COLUMNS = 4, 512  # of one program
_SLOPE, _CUBE = tl.constexpr(swiglu.SLOPE), tl.constexpr(swiglu.CUBE)


def forward(gate_up: Tensor, is_gelu: bool = False) -> Tensor:
    count, size = len(gate_up), gate_up.shape[1] // 2
    product = torch.empty(count, size, dtype=gate_up.dtype, device=gate_up.device)
    grid = (triton.cdiv(count, _ROWS), triton.cdiv(size, _COLUMNS))
    shape = {"SIZE": size, "ROWS": _ROWS, "COLUMNS": _COLUMNS, "IS_GELU": is_gelu}
    _forward[grid](gate_up, product, count, **shape, num_warps=4)
    return product


def backward(gate_up: Tensor, d_product: Tensor, is_gelu: bool = False) -> tuple[Tensor, Tensor]:
    count, size = len(gate_up), gate_up.shape[1] // 2
    d_gate_up, product = torch.empty_like(gate_up), torch.empty_like(d_product)
    grid = (triton.cdiv(count, _ROWS), triton.cdiv(size, _COLUMNS))
    shape = {"SIZE": size, "ROWS": _ROWS, "COLUMNS": _COLUMNS, "IS_GELU": is_gelu}
    _backward[grid](gate_up, d_product, d_gate_up, product, count, **shape, num_warps=4)
    return d_gate_up, product


@triton.jit
def opened(gate, kind, IS_GELU: tl.constexpr):
    """The activation of a gate in float32; rounded before it multiplies, as silu(gate) * up is outside of a kernel."""
    exponent = gate
    if IS_GELU:
        exponent = (gate + gate * gate * gate * _CUBE) * _SLOPE
    return (gate * tl.sigmoid(exponent)).to(kind).to(tl.float32)


@triton.jit
def _forward(
    gate_up, product, count,
    SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, IS_GELU: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
    at = rows.to(tl.int64)[:, None] * (2 * SIZE) + columns[None, :]
    gate = tl.load(gate_up + at, mask, 0.0).to(tl.float32)
    up = tl.load(gate_up + at + SIZE, mask, 0.0).to(tl.float32)
    kind = product.dtype.element_ty
    to = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
    tl.store(product + to, (opened(gate, kind, IS_GELU) * up).to(kind), mask)


@triton.jit
def _backward(
    gate_up, d_product, d_gate_up, product, count,
    SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, IS_GELU: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows < count)[:, None] & (columns < SIZE)[None, :]
    wide = rows.to(tl.int64)[:, None] * (2 * SIZE) + columns[None, :]
    narrow = rows.to(tl.int64)[:, None] * SIZE + columns[None, :]
    gate = tl.load(gate_up + wide, mask, 0.0).to(tl.float32)
    up = tl.load(gate_up + wide + SIZE, mask, 0.0).to(tl.float32)
    pulled = tl.load(d_product + narrow, mask, 0.0).to(tl.float32)
    if IS_GELU:
        probability = tl.sigmoid((gate + gate * gate * gate * _CUBE) * _SLOPE)
        d_gate = pulled * up * probability * (1 + gate * (1 - probability) * (1 + gate * gate * 3 * _CUBE) * _SLOPE)
    else:
        probability = tl.sigmoid(gate)
        d_gate = pulled * up * probability * (1 + gate * (1 - probability))
    active = (gate * probability).to(product.dtype.element_ty).to(tl.float32)
    kind = d_gate_up.dtype.element_ty
    tl.store(d_gate_up + wide, d_gate.to(kind), mask)
    tl.store(d_gate_up + wide + SIZE, (pulled * active).to(kind), mask)
    tl.store(product + narrow, (active * up).to(kind), mask)
