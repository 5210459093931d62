"""Add to the residual stream and normalise it (RMSNorm, Zhang and Sennrich 2019) in one pass, forward and backward.

The stream is float32; its normalised state is rounded once, to what is computed in. The weight is rounded alike, as an
engine that holds weights in that type has it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def add_rms_norm(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """residual [T, H] + delta [T, H], and that sum normalised, in `dtype`."""
    if delta is None:
        return residual, _Norm.apply(residual, weight, epsilon, dtype)  # type: ignore[no-untyped-call]
    return _AddNorm.apply(residual, delta, weight, epsilon, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, residual: Tensor, delta: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        state, normed, scale = forward(residual, delta, weight, epsilon, dtype)
        ctx.save_for_backward(state, weight, scale)
        ctx.set_materialize_grads(False)
        ctx.delta_dtype = delta.dtype
        return state, normed

    @staticmethod
    def backward(ctx: Any, d_state: Tensor | None, d_normed: Tensor | None) -> tuple[Tensor | None, ...]:
        state, weight, scale = ctx.saved_tensors
        if d_normed is None:  # only the sum went on
            return d_state, None if d_state is None else d_state.to(ctx.delta_dtype), None, None, None
        d_residual, d_delta, d_weight = backward(d_state, d_normed, state, weight, scale, ctx.delta_dtype)
        return d_residual, d_delta, d_weight, None, None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, residual: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
        state, normed, scale = forward(residual, None, weight, epsilon, dtype)
        ctx.save_for_backward(state, weight, scale)
        return normed

    @staticmethod
    def backward(ctx: Any, d_normed: Tensor) -> tuple[Tensor | None, ...]:
        state, weight, scale = ctx.saved_tensors
        d_residual, _, d_weight = backward(None, d_normed, state, weight, scale, None)
        return d_residual, d_weight, None, None


def forward(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum [T, H], the sum normalised [T, H], and what it was divided by, inverted [T]."""
    if residual.is_cuda:
        from strop.kernels.triton import norm

        return norm.forward(residual, delta, weight, epsilon, dtype)
    return reference_forward(residual, delta, weight, epsilon, dtype)


def backward(
    d_state: Tensor | None,
    d_normed: Tensor,
    state: Tensor,
    weight: Tensor,
    scale: Tensor,
    delta_dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Gradients of residual, delta (the same, in its type; None where there was none) and weight."""
    if state.is_cuda:
        from strop.kernels.triton import norm

        return norm.backward(d_state, d_normed, state, weight, scale, delta_dtype)
    return reference_backward(d_state, d_normed, state, weight, scale, delta_dtype)


def reference_forward(
    residual: Tensor, delta: Tensor | None, weight: Tensor, epsilon: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    state = residual if delta is None else residual + delta
    scale = torch.rsqrt(state.square().mean(-1) + epsilon)
    normed = state * scale.unsqueeze(1) * weight.to(dtype).to(state.dtype)
    return state, normed.to(dtype), scale


def reference_backward(
    d_state: Tensor | None,
    d_normed: Tensor,
    state: Tensor,
    weight: Tensor,
    scale: Tensor,
    delta_dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """y = w x / rms: dx = (w dy - n mean(w dy n)) / rms with n = x / rms, dw = sum over tokens of dy n."""
    normal = state * scale.unsqueeze(1)
    pulled = d_normed.to(state.dtype)
    weighted = pulled * weight.to(d_normed.dtype).to(state.dtype)
    d_residual = (weighted - normal * (weighted * normal).mean(-1, keepdim=True)) * scale.unsqueeze(1)
    if d_state is not None:
        d_residual = d_residual + d_state
    d_weight = (pulled * normal).sum(0).to(weight.dtype)
    return d_residual, None if delta_dtype is None else d_residual.to(delta_dtype), d_weight
