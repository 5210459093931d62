"""The feed-forward part of a decoder block, written out both ways."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from strop.kernels import swiglu
from strop.training.machine.projection import Projection


@dataclass(frozen=True, eq=False)
class DenseFeed:
    """Every token goes through the same gate; what is kept of it for the way back is gate and up."""

    gate_up: Projection
    down: Projection
    is_gelu: bool

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.gate_up.parameters, *self.down.parameters]

    def alone(self) -> DenseFeed:
        """Without adapters."""
        return replace(self, gate_up=self.gate_up.alone(), down=self.down.alone())

    def opened(self, normed: Tensor) -> Tensor:
        """[U, hidden] -> [U, 2F]."""
        return self.gate_up(normed)

    def closed(self, opened: Tensor) -> Tensor:
        """[U, 2F] -> [U, hidden]."""
        return self.down(swiglu.forward(opened, self.is_gelu))

    def back(self, d_added: Tensor, opened: Tensor) -> tuple[Tensor, Any]:
        """The gradient of the normalised state, and what `gradients` asks for."""
        d_product, middle = self.down.back(d_added)
        d_gate_up, product = swiglu.backward(opened, d_product, self.is_gelu)
        of_down = self.down.gradients(d_added, product, middle)
        del product, d_product
        d_normed, middle = self.gate_up.back(d_gate_up)
        return d_normed, (d_gate_up, middle, of_down)

    def gradients(self, rest: Any, normed: Tensor) -> list[Tensor]:
        """Of its parameters."""
        d_gate_up, middle, of_down = rest
        return [*self.gate_up.gradients(d_gate_up, normed, middle), *of_down]
