"""Adapters of low rank beside a linear layer (LoRA, Hu et al., 2106.09685), rounded at the same places for everybody.

y = x W' is rounded, m = x A' is rounded, and y + s m B' once more; sums are as wide as those of any product. Layers
that read the same input are one: their A lie below one another and their B along a diagonal, so that what is not a
layer's own adds exact zeros. W has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from strop.kernels.linear import weight_gradient


@dataclass(frozen=True, eq=False)
class Adapter:
    """Of layers that read the same input, in what is computed in; R are the ranks of all of them together."""

    down: Tensor  # [R, I], A of each
    up: Tensor  # [O, R], B of each on the diagonal
    scale: float
    shapes: Sequence[tuple[int, int]]  # rows of A (the rank) and of B, of each layer

    @classmethod
    def empty(cls, like: Tensor, shapes: Sequence[tuple[int, int]], dtype: torch.dtype, scale: float) -> Adapter:
        """Room for layers of the input that `like` [r, I], one of their A, has."""
        ranks, widths = (sum(each) for each in zip(*shapes, strict=True))
        down = like.new_zeros(ranks, like.shape[1], dtype=dtype)
        return cls(down, like.new_zeros(widths, ranks, dtype=dtype), scale, shapes)

    @property
    def parts(self) -> list[Tensor]:
        """Views of A and B of the first layer, of the second, and so on."""
        return self.cut(self.down, self.up)

    def cut(self, down: Tensor, up: Tensor) -> list[Tensor]:
        """Matrices that lie as these do, as A and B of each layer."""
        found, left, top = [], 0, 0
        for rank, width in self.shapes:
            found += [down[left : left + rank], up[top : top + width, left : left + rank]]
            left, top = left + rank, top + width
        return found


def add_adapter(output: Tensor, state: Tensor, adapter: Adapter | None) -> Tensor:
    """output [T, O] of a linear layer of state [T, I], in place."""
    if adapter is None:
        return output
    return output.addmm_(torch.mm(state, adapter.down.t()), adapter.up.t(), alpha=adapter.scale)


def state_pull(d_state: Tensor, d_output: Tensor, adapter: Adapter) -> Tensor:
    """Add to d_state [T, I], in place, what d_output [T, O] pulls through the adapter; returns the middle's [T, R]."""
    d_middle = torch.mm(d_output, adapter.up)  # without the scale, which its readers bring
    d_state.addmm_(d_middle, adapter.down, alpha=adapter.scale)
    return d_middle


def adapter_pulls(
    d_output: Tensor, d_middle: Tensor, state: Tensor, adapter: Adapter, dtype: torch.dtype
) -> list[Tensor]:
    """Gradients of A and B of each layer, in `dtype`; `state_pull` gave d_middle."""
    middle = torch.mm(state, adapter.down.t())
    down, up = weight_gradient(d_middle, state, dtype), weight_gradient(d_output, middle, dtype)
    return adapter.cut(down.mul_(adapter.scale), up.mul_(adapter.scale))
