"""Fused residual addition and RMSNorm (Zhang and Sennrich 2019), forward and backward.

The residual stream is float32; its normalized state is rounded once to the compute dtype. The weight is rounded
likewise, as an engine with weights of that dtype has it; the state is multiplied by `offset` + weight (Gemma stores
weights less 1).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from strop.kernels.cpu import train


class Pulls(NamedTuple):
    """Gradients, and the recomputed normalized state, which therefore need not be stored for the product that reads
    it.
    """

    residual: Tensor  # [T, H]
    delta: Tensor  # the same in what is computed in
    weight: Tensor  # [H]
    normed: Tensor  # [T, H]


def forward(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype, offset: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum [T, H] (the residual itself without delta), the sum normalised, and its inverse root mean square [T]."""
    if residual.is_cuda:
        from strop.kernels.triton import norm

        return norm.forward(residual, delta, weight, epsilon, dtype, offset=offset)
    if dtype == torch.float32 and (compiled := train.serving(residual, delta, weight)):
        return compiled.norm_forward(residual, delta, weight + offset if offset else weight, epsilon)
    return reference_forward(residual, delta, weight, epsilon, dtype, offset)


def backward(
    d_sum: Tensor | None, d_normed: Tensor, residual: Tensor, delta: Tensor | None, weight: Tensor, scale: Tensor,
    offset: float = 0.0,
) -> Pulls:  # fmt: skip
    """`d_sum` [T, H] is what else pulls at the sum; residual and delta may be the sum and None."""
    if residual.is_cuda:
        from strop.kernels.triton import norm

        return norm.backward(d_sum, d_normed, residual, delta, weight, scale, offset)
    if compiled := train.serving(d_sum, d_normed, residual, delta, weight, scale):
        factor = weight + offset if offset else weight
        d_state, d_weight, normed = compiled.norm_backward(d_sum, d_normed, residual, delta, factor, scale)
        return Pulls(d_state, d_state, d_weight, normed)
    return reference_backward(d_sum, d_normed, residual, delta, weight, scale, offset)


def reference_forward(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype, offset: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    state = residual if delta is None else residual + delta
    scale = torch.rsqrt(state.square().mean(-1) + epsilon)
    normed = state * scale.unsqueeze(1) * (weight.to(dtype).to(state.dtype) + offset)
    return state, normed.to(dtype), scale


def reference_backward(
    d_sum: Tensor | None, d_normed: Tensor, residual: Tensor, delta: Tensor | None, weight: Tensor, scale: Tensor,
    offset: float = 0.0,
) -> Pulls:  # fmt: skip
    """y = w x / rms: dx = (w dy - n mean(w dy n)) / rms with n = x / rms, dw = sum over tokens of dy n."""
    state = residual if delta is None else residual + delta
    normal = state * scale.unsqueeze(1)
    pulled = d_normed.to(state.dtype)
    factor = weight.to(d_normed.dtype).to(state.dtype) + offset
    weighted = pulled * factor
    d_state = (weighted - normal * (weighted * normal).mean(-1, keepdim=True)) * scale.unsqueeze(1)
    if d_sum is not None:
        d_state = d_state + d_sum
    d_weight = (pulled * normal).sum(0).to(weight.dtype)
    return Pulls(d_state, d_state.to(d_normed.dtype), d_weight, (normal * factor).to(d_normed.dtype))
