"""Feed-forward part of a decoder block, with a handwritten backward pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from strop.kernels import swiglu
from strop.models.layers.block import RoutedExperts
from strop.training.machine.projection import Projection


@dataclass(frozen=True, eq=False)
class DenseFeed:
    """Dense feed-forward layer; gate and up are kept for the backward pass."""

    gate_up: Projection
    down: Projection
    is_gelu: bool

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.gate_up.parameters, *self.down.parameters]

    def alone(self) -> DenseFeed:
        """Without adapters."""
        return replace(self, gate_up=self.gate_up.alone(), down=self.down.alone())

    def opened(self, normed: Tensor, routes: Tensor | None) -> tuple[Tensor, Tensor]:
        """[U, hidden] -> [U, 2F], and no choice."""
        return self.gate_up(normed), normed.new_empty(0)

    def closed(self, opened: Tensor, chosen: Tensor) -> Tensor:
        """[U, 2F] -> [U, hidden]."""
        return self.down(swiglu.forward(opened, self.is_gelu))

    def back(self, d_added: Tensor, opened: Tensor, chosen: Tensor) -> tuple[Tensor, Any]:
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


@dataclass(frozen=True, eq=False)
class RoutedFeed:
    """Mixture of experts; the state and the chosen experts are kept for the backward pass.

    The backward pass is autograd's over a recomputed forward pass. `cast` has the weights in the compute dtype.
    """

    learned: RoutedExperts
    cast: RoutedExperts
    first: int  # of the routes of all layers, its own

    @property
    def parameters(self) -> list[Tensor]:
        return [self.learned.router, self.learned.gate_up, self.learned.down]

    def alone(self) -> RoutedFeed:
        return self

    def opened(self, normed: Tensor, routes: Tensor | None) -> tuple[Tensor, Tensor]:
        """[U, hidden] as it is, and the experts of each token [U, k]: those of `routes` [U, R] where it knows them."""
        taken = None if routes is None else routes[:, self.first : self.first + self.cast.count]
        return normed, self.cast.route(normed, taken)[0]

    def closed(self, opened: Tensor, chosen: Tensor) -> Tensor:
        return _through(self.cast, opened, chosen)

    def back(self, d_added: Tensor, opened: Tensor, chosen: Tensor) -> tuple[Tensor, Any]:
        given = zip((self.cast.router, self.cast.gate_up, self.cast.down), self.parameters, strict=True)
        weights = [each.detach().requires_grad_(parameter.requires_grad) for each, parameter in given]
        with torch.enable_grad():
            state = opened.detach().requires_grad_()
            cast = replace(self.cast, router=weights[0], gate_up=weights[1], down=weights[2])
            added = _through(cast, state, chosen)
        d_normed, *rest = torch.autograd.grad(
            added, [state, *(each for each in weights if each.requires_grad)], d_added
        )
        return d_normed, rest

    def gradients(self, rest: Any, normed: Tensor) -> list[Tensor]:
        """Of weights that do not learn nobody asks for one."""
        found = iter(rest)
        return [next(found).to(each.dtype) if each.requires_grad else each for each in self.parameters]


def _through(experts: RoutedExperts, state: Tensor, chosen: Tensor) -> Tensor:
    """[U, hidden] -> [U, hidden]."""
    return experts.mixed(state, *experts.route(state, chosen))
