"""Fused norm and rotary embedding of queries and keys, forward and backward.

The norm is of each head (Qwen 3), or of all heads of a token together (OLMo 2): then its weight is as wide as they are.
The normalized state is rounded before it is multiplied by the weight, as in transformers, and once more at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.attention import Angles, Heads, turned


class HeadNorms(NamedTuple):
    """Norm weights [D], or [H D] and [K D], added to `offset`."""

    query: Tensor
    key: Tensor
    epsilon: float
    offset: float


def forward(fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles) -> Tensor:
    """[T, (H + 2K) D] -> the same with queries and keys normalised and turned; values as they are."""
    if fused.is_cuda:
        from strop.kernels.triton import head_norms

        return head_norms.forward(fused, heads, norms, angles)
    return reference_forward(fused, heads, norms, angles)


def backward(
    d_turned: Tensor, fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of what was normalised [T, (H + 2K) D], in the place of those of the result, and of both weights."""
    if fused.is_cuda:
        from strop.kernels.triton import head_norms

        return head_norms.backward(d_turned, fused, heads, norms, angles)
    return reference_backward(d_turned, fused, heads, norms, angles)


def reference_forward(fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles) -> Tensor:
    query, key, value = heads.split(fused)
    found = [_normed(each, weight, norms) for each, weight in ((query, norms.query), (key, norms.key))]
    both = [turned(each, *angles).to(fused.dtype) for each in found]
    return torch.cat((*both, value), 1).flatten(1)


def reference_backward(
    d_turned: Tensor, fused: Tensor, heads: Heads, norms: HeadNorms, angles: Angles
) -> tuple[Tensor, Tensor, Tensor]:
    """y = w round(x / rms): dx = (w dy - n mean(w dy n)) / rms with n = x / rms, dw = sum of dy round(n)."""
    cosine, sine = angles
    of_weights = []
    parts = zip(heads.split(fused)[:2], heads.split(d_turned)[:2], (norms.query, norms.key), strict=True)
    for state, pull, weight in parts:
        rows = _rows(state, weight)
        pulled = turned(pull, cosine, -sine).view(rows.shape)
        scale = torch.rsqrt(rows.square().mean(-1, keepdim=True) + norms.epsilon)
        normal = rows * scale
        weighted = pulled * _factor(weight, norms.offset, fused.dtype, rows.dtype)
        pull.copy_(((weighted - normal * (weighted * normal).mean(-1, keepdim=True)) * scale).view(pull.shape))
        of_weights.append((pulled * normal.to(fused.dtype)).sum((0, 1)).to(weight.dtype))
    return d_turned, *of_weights  # type: ignore[return-value]


def _normed(state: Tensor, weight: Tensor, norms: HeadNorms) -> Tensor:
    """[T, H, D], not rounded at the end."""
    rows = _rows(state, weight)
    normal = F.rms_norm(rows, weight.shape, None, norms.epsilon).to(state.dtype).to(rows.dtype)
    return (normal * _factor(weight, norms.offset, state.dtype, rows.dtype)).view(state.shape)


def _rows(state: Tensor, weight: Tensor) -> Tensor:
    """[T, 1 or H, D or H D]: what one norm looks at."""
    return state.to(torch.promote_types(state.dtype, torch.float32)).reshape(len(state), -1, len(weight))


def _factor(weight: Tensor, offset: float, dtype: torch.dtype, wide: torch.dtype) -> Tensor:
    """As an engine that holds weights in what is computed in has it."""
    return weight.detach().to(dtype).to(wide) + offset
