"""LoRA linear layer (Hu et al., 2106.09685) with rounding that trainer and engine share, so their logprobs agree.

y = b + x W' is rounded as without an adapter, m = x A' is rounded, d = s m B' is rounded, and y + d is. This equals
PEFT where s is a power of two; for other s PEFT also rounds m B'. Sums are as wide as those of any product.
Layers that read the same input are fused: their A matrices are stacked and their B matrices form a block diagonal, so
that each layer adds only exact zeros to the others. W has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels.linear import weight_gradient
from strop.kernels.nf4 import Packed4


@dataclass(frozen=True, eq=False)
class Adapter:
    """LoRA matrices of layers that read the same input, in the compute dtype; R is the sum of their ranks."""

    down: Tensor  # [R, I], A of each
    up: Tensor  # [O, R], B of each on the diagonal
    scale: float
    shapes: Sequence[tuple[int, int]]  # rows of A (the rank) and of B, of each layer
    packed: Packed4 | None = None  # the weights beside it, where they are held in four bits

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


def adapted(state: Tensor, weight: Tensor, bias: Tensor | None, adapter: Adapter) -> Tensor:
    """state [T, I], weight [O, I], bias [O] -> [T, O]."""
    return add_beside(F.linear(state, weight, bias), state, adapter)


def add_beside(output: Tensor, state: Tensor, adapter: Adapter) -> Tensor:
    """What the adapter makes of state [T, I], added to what the layer made of it [T, O], in place."""
    middle = _middle(state, adapter)
    if _is_narrow(state):
        from strop.kernels.triton.adapted import add

        return add(output, middle, adapter.up, adapter.scale)
    return output.add_(_scaled(middle, adapter.up.t(), adapter.scale))


def _middle(state: Tensor, adapter: Adapter) -> Tensor:
    """x A' [T, R]: of so few columns a library would cut the sums, by the number of rows."""
    if _is_narrow(state):
        from strop.kernels.triton import in_order

        if in_order.can_multiply(state, adapter.down):
            return in_order.product(state, adapter.down, None)
    return torch.mm(state, adapter.down.t())


def _is_narrow(state: Tensor) -> bool:
    return state.is_cuda and state.dtype in (torch.bfloat16, torch.float16)


def state_pull(d_output: Tensor, weight: Tensor, adapter: Adapter) -> tuple[Tensor, Tensor]:
    """Gradients of the state [T, I], rounded likewise, and of the middle [T, R] but for the scale."""
    d_middle = torch.mm(d_output, adapter.up)
    return _scaled(d_middle, adapter.down, adapter.scale).addmm_(d_output, weight), d_middle


def _scaled(one: Tensor, other: Tensor, scale: float) -> Tensor:
    """scale * one @ other, rounded once."""
    return one.new_empty(len(one), other.shape[1]).addmm_(one, other, beta=0, alpha=scale)


def adapter_pulls(
    d_output: Tensor, d_middle: Tensor, state: Tensor, adapter: Adapter, dtype: torch.dtype
) -> list[Tensor]:
    """Gradients of A and B of each layer, in `dtype`; `state_pull` gave d_middle."""
    middle = _middle(state, adapter)
    down, up = weight_gradient(d_middle, state, dtype), weight_gradient(d_output, middle, dtype)
    return adapter.cut(down.mul_(adapter.scale), up.mul_(adapter.scale))
