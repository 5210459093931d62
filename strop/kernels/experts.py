"""Mixture-of-experts feed-forward layer (Shazeer et al. 2017; Mixtral, 2401.04088).

Rounding can change which experts are chosen. To recompute a completion, the recorded choice is passed in and only the
router weights are computed again (rollout routing replay, 2510.11370). Tokens are sorted by expert, so that each expert
is one product. A token's experts are summed in float32 in the order in which they were chosen, in every batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from strop.kernels.swiglu import reference_forward


def route(
    state: Tensor, router: Tensor, count: int, is_normalised: bool, taken: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """state [T, hidden], router [E, hidden] -> experts [T, k], and their weights [T, k] in float32.

    `taken` [T, k] are known choices; one that is no expert's number is made anew.
    """
    probabilities = _Liking.apply(state, router).softmax(-1)  # type: ignore[no-untyped-call]
    chosen = probabilities.detach().topk(count, -1).indices
    if taken is not None:
        chosen = torch.where((taken < 0) | (taken >= len(router)), chosen, taken)
    weights = probabilities.gather(1, chosen)
    return chosen, weights / weights.sum(-1, keepdim=True) if is_normalised else weights


class _Liking(torch.autograd.Function):
    """Router logits of a state in float32; low-precision operands are summed on a GPU in one order for any number of
    rows.
    """

    @staticmethod
    def forward(ctx: Any, state: Tensor, router: Tensor) -> Tensor:
        ctx.save_for_backward(state, router)
        wide = torch.promote_types(state.dtype, torch.float32)
        if state.is_cuda and state.dtype == router.dtype:
            from strop.kernels.triton import in_order

            if in_order.can_multiply(state, router):
                return in_order.product(state, router, None, wide)
        return torch.mm(state.to(wide), router.to(wide).t())

    @staticmethod
    def backward(ctx: Any, pull: Tensor) -> tuple[Tensor, Tensor]:
        state, router = ctx.saved_tensors
        of_state, of_router = torch.mm(pull, router.to(pull.dtype)), torch.mm(pull.t(), state.to(pull.dtype))
        return of_state.to(state.dtype), of_router.to(router.dtype)


def mixed(
    state: Tensor, chosen: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor, is_gelu: bool = False
) -> Tensor:
    """state [T, hidden] through experts gate_up [E, 2F, hidden] and down [E, hidden, F] -> [T, hidden]."""
    each = chosen.flatten()
    order = each.argsort(stable=True)  # [T k]
    counts = each.new_zeros(len(down)).scatter_add_(0, each, torch.ones_like(each))  # [E]
    opened = by_expert(state.index_select(0, order // chosen.shape[1]), gate_up, counts)
    found = by_expert(reference_forward(opened, is_gelu), down, counts)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    told = found.index_select(0, back).view(*chosen.shape, -1)  # [T, k, hidden]
    return (told.to(weights.dtype) * weights.unsqueeze(-1)).sum(1).to(state.dtype)


def by_expert(rows: Tensor, experts: Tensor, counts: Tensor) -> Tensor:
    """rows [N, I] in order of their expert, experts [E, O, I], rows of each [E] -> [N, O]."""
    if rows.is_cuda and rows.dtype == torch.bfloat16:  # nothing waits for the host, so that a step can be a graph
        ends = counts.cumsum(0).to(torch.int32)
        return torch._grouped_mm(rows, experts.transpose(1, 2), offs=ends)
    if rows.is_cuda and not torch.is_grad_enabled():
        return on_all_rows(rows, experts, counts)
    parts = torch.split(rows, counts.tolist())
    return torch.cat([torch.mm(part, expert.t()) for part, expert in zip(parts, experts, strict=True)])


def on_all_rows(rows: Tensor, experts: Tensor, counts: Tensor) -> Tensor:
    """The same where there is no grouped product and nobody may wait: every expert on every row, most in vain."""
    at, ends = torch.arange(len(rows), device=rows.device).unsqueeze(1), counts.cumsum(0)
    found = rows.new_zeros(len(rows), experts.shape[1])
    for expert, count, end in zip(experts, counts, ends, strict=True):
        found = torch.where((at < end) & (at >= end - count), torch.mm(rows, expert.t()), found)
    return found
