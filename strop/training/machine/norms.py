"""Optional norms before and after the parts of a decoder block."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.kernels import norm
from strop.kernels.norm import Pulls


@dataclass(frozen=True, eq=False)
class NormWeight:
    """RMSNorm weight, added to `offset`."""

    weight: Tensor
    epsilon: float
    dtype: torch.dtype
    offset: float = 0.0

    @property
    def parameters(self) -> list[Tensor]:
        return [self.weight]

    def __call__(self, residual: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The sum [U, hidden], the sum normalised, and what going backward needs of it [U]."""
        return norm.forward(residual, delta, self.weight, self.epsilon, self.dtype, self.offset)

    def back(
        self, d_sum: Tensor | None, d_normed: Tensor, residual: Tensor, delta: Tensor | None, scale: Tensor
    ) -> tuple[Pulls, list[Tensor]]:
        """Gradients, and of them those of its parameters."""
        found = norm.backward(d_sum, d_normed, residual, delta, self.weight, scale, self.offset)
        return found, [found.weight]

    def of_heads(self, heads: Tensor) -> Tensor:
        """[T, H, D], each head or all of a token, rounded before the weight as transformers does; the result is not."""
        wide = torch.promote_types(heads.dtype, torch.float32)
        rows = heads.to(wide).reshape(len(heads), -1, len(self.weight))
        normal = F.rms_norm(rows, self.weight.shape, None, self.epsilon).to(self.dtype)
        return (normal.to(wide) * (self.weight.to(self.dtype).to(wide) + self.offset)).view(heads.shape)

    def behind(self, added: Tensor) -> Tensor:
        """What a part adds to the stream [U, hidden], normalised before it is added."""
        return self(_wide(added), None)[1]

    def behind_back(self, d_added: Tensor, added: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The gradient of what was to be added, and of the weight."""
        found, weights = self.back(None, d_added, _wide(added), None, self(_wide(added), None)[2])
        return found.delta, weights


@dataclass(frozen=True, eq=False)
class NoNorm:
    """Identity in place of a norm, rounded to the compute dtype."""

    dtype: torch.dtype

    @property
    def parameters(self) -> list[Tensor]:
        return []

    def __call__(self, residual: Tensor, delta: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        state = residual if delta is None else residual + delta
        return state, state.to(self.dtype), state.new_empty(0)

    def back(
        self, d_sum: Tensor | None, d_normed: Tensor, residual: Tensor, delta: Tensor | None, scale: Tensor
    ) -> tuple[Pulls, list[Tensor]]:
        state, normed, _ = self(residual, delta)
        d_state = d_normed.to(state.dtype) if d_sum is None else d_sum + d_normed
        return Pulls(d_state, d_state.to(self.dtype), scale, normed), []

    def behind(self, added: Tensor) -> Tensor:
        return added

    def behind_back(self, d_added: Tensor, added: Tensor) -> tuple[Tensor, list[Tensor]]:
        return d_added, []


def _wide(added: Tensor) -> Tensor:
    return added.to(torch.promote_types(added.dtype, torch.float32))
