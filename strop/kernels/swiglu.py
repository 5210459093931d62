"""silu(gate) * up (SwiGLU, Shazeer 2020); going backward the product is made again together with its own gradient."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.cpu import train


def forward(gate_up: Tensor) -> Tensor:
    """[T, 2F] -> [T, F]."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.forward(gate_up)
    if compiled := train.serving(gate_up):
        return compiled.swiglu_forward(gate_up)
    return reference_forward(gate_up)


def backward(gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of gate_up [T, 2F], and the product [T, F] once more."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.backward(gate_up, d_product)
    if compiled := train.serving(gate_up, d_product):
        return compiled.swiglu_backward(gate_up, d_product)
    return reference_backward(gate_up, d_product)


def reference_forward(gate_up: Tensor) -> Tensor:
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate) * up


def reference_backward(gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
    """d silu(g) / dg = s (1 + g (1 - s)) with s = sigmoid(g)."""
    gate, up = gate_up.chunk(2, -1)
    chance = torch.sigmoid(gate)
    opened = F.silu(gate)
    d_gate = d_product * up * chance * (1 + gate * (1 - chance))
    return torch.cat((d_gate, d_product * opened), -1), opened * up
