"""Norms of queries and keys before they are turned: gradients by formula against autograd's, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.kernels.attention import Heads, turned
from strop.kernels.head_norms import HeadNorms, backward, forward

HEADS = Heads(queries=4, keys=2, size=8)


def written_out(fused: Tensor, query: Tensor, key: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """With the root of the mean square of what one norm looks at."""
    found = []
    for state, weight in zip(HEADS.split(fused), (query, key, None), strict=True):
        if weight is None:
            found.append(state.flatten(1))
            continue
        rows = state.reshape(len(state), -1, len(weight))
        normed = rows / (rows.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * (weight + 1)
        found.append(turned(normed.view(state.shape), *angles).flatten(1))
    return torch.cat(found, 1)


@pytest.mark.parametrize("is_wide", [True, False])
def test_gradients_are_those_of_autograd(is_wide: bool) -> None:
    torch.manual_seed(0)
    fused = torch.randn(5, HEADS.width, dtype=torch.float64, requires_grad=True)
    sizes = (HEADS.queries * HEADS.size, HEADS.keys * HEADS.size) if is_wide else (HEADS.size, HEADS.size)
    query, key = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes)
    angle = torch.randn(5, HEADS.size // 2, dtype=torch.float64)
    angles, pull = (angle.cos(), angle.sin()), torch.randn(5, HEADS.width, dtype=torch.float64)
    expected = written_out(fused, query, key, angles)
    norms = HeadNorms(query, key, 1e-6, 1.0)
    assert torch.allclose(forward(fused.detach(), HEADS, norms, angles), expected, atol=1e-12)
    wanted = torch.autograd.grad(expected, (fused, query, key), pull)
    found = backward(pull.clone(), fused.detach(), HEADS, norms, angles)
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(found, wanted, strict=True))
