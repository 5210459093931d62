"""The gated feed-forward's second half, down(silu(gate) * up) (SwiGLU, Shazeer 2020), which keeps only gate and up.

Going backward, the product is made again together with its own gradient, so it is never stored.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.linear import weight_gradient


def swiglu_linear(gate_up: Tensor, cast: Tensor, weight: Tensor) -> Tensor:
    """gate_up [T, 2F] -> [T, O] through `cast` [O, F]; the gradient of `cast` goes to `weight` in its own type."""
    return _SwigluLinear.apply(gate_up, cast, weight)  # type: ignore[no-any-return, no-untyped-call]


class _SwigluLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate_up: Tensor, cast: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(gate_up, cast)
        ctx.weight_dtype = weight.dtype
        return torch.mm(forward(gate_up), cast.t())

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        gate_up, cast = ctx.saved_tensors
        d_product = torch.mm(d_output, cast)
        d_gate_up, product = backward(gate_up, d_product)
        d_weight = weight_gradient(d_output, product, ctx.weight_dtype) if ctx.needs_input_grad[2] else None
        return d_gate_up, None, d_weight


def forward(gate_up: Tensor) -> Tensor:
    """[T, 2F] -> [T, F]."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.forward(gate_up)
    return reference_forward(gate_up)


def backward(gate_up: Tensor, d_product: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of gate_up [T, 2F], and the product [T, F] once more."""
    if gate_up.is_cuda:
        from strop.kernels.triton import swiglu

        return swiglu.backward(gate_up, d_product)
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
