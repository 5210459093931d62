"""Rotary positions (RoFormer, Su et al. 2021) and causal attention over packed sequences, as one differentiable step.

Queries and keys are turned where they lie, then a flash kernel (Dao, 2023) takes sequences of various lengths as they
are, without padding. Where siblings share a prefix only its keys are repeated: a kernel whose queries are the last of a
sequence needs no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.attention import Plan
from strop.types import IntArray


@dataclass(frozen=True)
class Heads:
    """How the columns of a fused projection [T, (H + 2K) D] fall into heads."""

    queries: int  # H
    keys: int  # K
    size: int  # D

    def split(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Views of queries [T, H, D], keys and values [T, K, D]."""
        heads = fused.view(len(fused), -1, self.size)
        query, key, value = torch.split(heads, [self.queries, self.keys, self.keys], 1)
        return query, key, value


class Varlen:
    """Which keys each computed token sees, for kernels that take sequences of various lengths.

    `sizes` [S] are the lengths of sequences, `places` [N] say which computed token each of theirs is: those before a
    sequence's own ones are the prefix it shares.
    """

    def __init__(self, sizes: IntArray, places: IntArray, device: torch.device | str) -> None:
        starts = np.cumsum(sizes) - sizes
        is_own = np.zeros(len(places), dtype=np.bool_)
        is_own[np.unique(places, return_index=True)[1]] = True
        own = np.add.reduceat(is_own.astype(np.int64), starts)  # [S]
        kept = own > 0  # a sequence that is a prefix of another has nothing left to compute
        places = places[np.repeat(kept, sizes)]
        sizes, own = sizes[kept], own[kept]
        self.query_ends, self.key_ends = (_ends(each, device) for each in (own, sizes))  # [S + 1]
        self.max_queries, self.max_keys = int(own.max()), int(sizes.max())
        self.gather: Tensor | None = None  # [N], the computed token behind each key
        self.order: Tensor | None = None  # [N], keys by the token behind them
        self.bounds: Tensor | None = None  # [U + 1], where each token's keys lie in `order`
        if len(places) != own.sum():
            self.gather = torch.from_numpy(places).to(device)
            self.order = torch.from_numpy(np.argsort(places, kind="stable")).to(device)
            self.bounds = _ends(np.bincount(places), device)


def rotary_attention(fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads, plan: Varlen, scale: float) -> Tensor:
    """fused [U, (H + 2K) D], which is overwritten, cosine and sine [U, D / 2] -> [U, H D]; on a GPU only."""
    return _RotaryAttention.apply(fused, cosine, sine, heads, plan, scale)  # type: ignore[no-any-return, no-untyped-call]


def rotary_attention_by_plan(
    fused: Tensor,
    cosine: Tensor,
    sine: Tensor,
    heads: Heads,
    plan: Plan,
    scale: float,
    layer: int,
    window: int | None,
) -> Tensor:
    """The same with any plan, on any device."""
    query, key, value = heads.split(_Rotate.apply(fused, cosine, sine, heads))  # type: ignore[no-untyped-call]
    return plan.attend(layer, query, key, value, scale, window, None).reshape(len(fused), -1)


class _RotaryAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads, plan: Varlen, scale: float
    ) -> Tensor:
        rotate(fused, cosine, sine, heads)
        query, key, value = _seen(fused, heads, plan)
        output, *rest = torch.ops.aten._flash_attention_forward(
            query, key, value, plan.query_ends, plan.key_ends, plan.max_queries, plan.max_keys,
            0.0, True, False, scale=scale,
        )  # fmt: skip
        # nobody else looks at the projection, so autograd need not know that it was overwritten
        ctx.save_for_backward(fused, cosine, sine, output, *rest[:3])
        ctx.heads, ctx.plan, ctx.scale = heads, plan, scale
        return output.view(len(fused), -1)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        fused, cosine, sine, output, logsumexp, random, unused = ctx.saved_tensors
        heads, plan = ctx.heads, ctx.plan
        query, key, value = _seen(fused, heads, plan)
        d_query, d_key, d_value = torch.ops.aten._flash_attention_backward(
            d_output.view_as(output), query, key, value, output, logsumexp, plan.query_ends, plan.key_ends,
            plan.max_queries, plan.max_keys, 0.0, True, random, unused, scale=ctx.scale,
        )  # fmt: skip
        d_fused = rotate_back(d_query, d_key, d_value, cosine, sine, plan.order, plan.bounds)
        return d_fused, None, None, None, None, None


class _Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads) -> Tensor:
        rotate(fused, cosine, sine, heads)
        ctx.mark_dirty(fused)
        ctx.save_for_backward(cosine, sine)
        ctx.heads = heads
        return fused

    @staticmethod
    def backward(ctx: Any, d_fused: Tensor) -> tuple[Tensor | None, ...]:
        cosine, sine = ctx.saved_tensors
        d_query, d_key, d_value = ctx.heads.split(d_fused)
        return rotate_back(d_query, d_key, d_value, cosine, sine), None, None, None


def rotate(fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads) -> None:
    """Turn queries and keys of fused [T, (H + 2K) D] in place, in float32 and rounded once."""
    if fused.is_cuda:
        from strop.kernels.triton import rotary

        rotary.rotate(fused, cosine, sine, heads.queries + heads.keys, heads.size)
    else:
        reference_rotate(fused, cosine, sine, heads)


def rotate_back(
    d_query: Tensor,
    d_key: Tensor,
    d_value: Tensor,
    cosine: Tensor,
    sine: Tensor,
    order: Tensor | None = None,
    bounds: Tensor | None = None,
) -> Tensor:
    """Gradient [U, (H + 2K) D] of the fused projection from those of turned heads; keys [N, K, D] where repeated."""
    if d_query.is_cuda:
        from strop.kernels.triton import rotary

        return rotary.rotate_back(d_query, d_key, d_value, cosine, sine, order, bounds)
    return reference_rotate_back(d_query, d_key, d_value, cosine, sine, order, bounds)


def reference_rotate(fused: Tensor, cosine: Tensor, sine: Tensor, heads: Heads) -> None:
    for turned in heads.split(fused)[:2]:
        turned.copy_(_turned(turned, cosine, sine))


def reference_rotate_back(
    d_query: Tensor,
    d_key: Tensor,
    d_value: Tensor,
    cosine: Tensor,
    sine: Tensor,
    order: Tensor | None = None,
    bounds: Tensor | None = None,
) -> Tensor:
    d_key, d_value = (_summed(each, order, bounds) for each in (d_key, d_value))
    parts = (_turned(d_query, cosine, -sine), _turned(d_key, cosine, -sine), d_value)
    return torch.cat([part.to(d_query.dtype) for part in parts], 1).flatten(1)


def _turned(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """[T, H, D] by angles [T, D / 2], in their precision."""
    first, second = heads.to(cosine.dtype).chunk(2, -1)
    cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def _summed(values: Tensor, order: Tensor | None, bounds: Tensor | None) -> Tensor:
    """Rows of the same token added: [N, ...] -> [U, ...]."""
    if order is None or bounds is None:
        return values
    counts = bounds.diff().long()
    owners = torch.arange(len(counts), device=values.device).repeat_interleave(counts)
    return values.new_zeros(len(counts), *values.shape[1:]).index_add(0, owners, values.index_select(0, order))


def _seen(fused: Tensor, heads: Heads, plan: Varlen) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = heads.split(fused)
    if plan.gather is None:
        return query, key, value
    both = fused[:, heads.queries * heads.size :].index_select(0, plan.gather).view(-1, 2, heads.keys, heads.size)
    return query, both[:, 0], both[:, 1]


def _ends(sizes: IntArray, device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)).to(device)
