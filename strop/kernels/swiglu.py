"""Fused SwiGLU activation silu(gate) * up (Shazeer 2020); the backward pass recomputes it.

Both activations are g sigmoid(u): u = g is silu, u = 2 sqrt(2 / pi) (g + 0.044715 g^3) is gelu in its tanh form.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.cpu import train

SLOPE, CUBE = 2 * math.sqrt(2 / math.pi), 0.044715  # of gelu's u


def forward(gate_up: Tensor, is_gelu: bool = False) -> Tensor:
    """[T, 2F] -> [T, F]."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.forward(gate_up, is_gelu)
    if not is_gelu and (compiled := train.serving(gate_up)):
        return compiled.swiglu_forward(gate_up)
    return reference_forward(gate_up, is_gelu)


def backward(gate_up: Tensor, d_product: Tensor, is_gelu: bool = False) -> tuple[Tensor, Tensor]:
    """The gradient of gate_up [T, 2F], and the product [T, F] once more."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.backward(gate_up, d_product, is_gelu)
    if not is_gelu and (compiled := train.serving(gate_up, d_product)):
        return compiled.swiglu_backward(gate_up, d_product)
    return reference_backward(gate_up, d_product, is_gelu)


def reference_forward(gate_up: Tensor, is_gelu: bool = False) -> Tensor:
    gate, up = gate_up.chunk(2, -1)
    return _opened(gate, is_gelu) * up


def reference_backward(gate_up: Tensor, d_product: Tensor, is_gelu: bool = False) -> tuple[Tensor, Tensor]:
    """d g sigmoid(u) / dg = s (1 + g (1 - s) du / dg) with s = sigmoid(u)."""
    gate, up = gate_up.chunk(2, -1)
    opened = _opened(gate, is_gelu)
    probability = torch.sigmoid(SLOPE * (gate + CUBE * gate**3) if is_gelu else gate)
    rise = SLOPE * (1 + 3 * CUBE * gate**2) if is_gelu else 1
    d_gate = d_product * up * probability * (1 + gate * (1 - probability) * rise)
    return torch.cat((d_gate, d_product * opened), -1), opened * up


def _opened(gate: Tensor, is_gelu: bool) -> Tensor:
    return F.gelu(gate, approximate="tanh") if is_gelu else F.silu(gate)
