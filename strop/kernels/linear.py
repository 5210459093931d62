"""Linear layers whose weights are float32 and whose products are not: several of them as one, gradients in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def linear(state: Tensor, cast: Tensor, bias: Tensor | None, weights: Sequence[Tensor]) -> Tensor:
    """state [T, I] through `cast` [O, I], the given weights (then biases) one under the other and rounded.

    Gradients go to those weights in their own type, summed in float32.
    """
    return _Linear.apply(state, cast, bias, *weights)  # type: ignore[no-any-return, no-untyped-call]


def embed(tokens: Tensor, cast: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows [T, H] of the rounded table, in `dtype`; their gradient goes to `weight`."""
    return _Embed.apply(tokens, cast, weight, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, cast: Tensor, bias: Tensor | None, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(state, cast)
        ctx.sizes = [len(weight) for weight in weights if weight.dim() == 2]
        ctx.weight_dtype, ctx.has_bias = weights[0].dtype, bias is not None
        return torch.mm(state, cast.t()) if bias is None else torch.addmm(bias, state, cast.t())

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        state, cast = ctx.saved_tensors
        d_state = torch.mm(d_output, cast) if ctx.needs_input_grad[0] else None
        if not any(ctx.needs_input_grad[3:]):
            return d_state, None, None, *[None for _ in ctx.needs_input_grad[3:]]
        found = list(torch.split(weight_gradient(d_output, state, ctx.weight_dtype), ctx.sizes))
        if ctx.has_bias:
            found += torch.split(d_output.sum(0, dtype=ctx.weight_dtype), ctx.sizes)
        return d_state, None, None, *found


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, cast: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.count, ctx.weight_dtype = len(weight), weight.dtype
        return cast.index_select(0, tokens).to(dtype)

    @staticmethod
    def backward(ctx: Any, d_rows: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,) = ctx.saved_tensors
        d_weight = torch.ops.aten.embedding_dense_backward(d_rows, tokens, ctx.count, -1, False)
        return None, None, d_weight.to(ctx.weight_dtype), None


def weight_gradient(d_output: Tensor, state: Tensor, dtype: torch.dtype) -> Tensor:
    """d_output [T, O], state [T, I] -> [O, I] in `dtype`, of which nothing is rounded on the way."""
    return product(d_output.t(), state, dtype)


def product(one: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """one @ other in a wider type than theirs."""
    if one.dtype == dtype:
        return torch.mm(one, other)
    if one.is_cuda and dtype == torch.float32:
        return torch.ops.aten.mm.dtype(one, other, dtype)  # type: ignore[no-any-return]
    return torch.mm(one.to(dtype), other.to(dtype))


def add_product(total: Tensor, one: Tensor, other: Tensor) -> None:
    """total += one @ other, in the type of `total`."""
    if one.dtype == total.dtype:
        total.addmm_(one, other)
    elif one.is_cuda and total.dtype == torch.float32:
        torch.ops.aten.addmm.dtype_out(total, one, other, total.dtype, out=total)
    else:
        total.addmm_(one.to(total.dtype), other.to(total.dtype))
