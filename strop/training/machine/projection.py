"""Fused projection: linear layers of one input as one product, with or without LoRA, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from strop.kernels.adapted import Adapter, adapted, adapter_pulls, state_pull
from strop.kernels.cpu.linear import Linear
from strop.kernels.linear import weight_gradient
from strop.kernels.nf4 import Packed4


class Projection:
    """Fused linear layers; `cast` [O, I] are their weights in the compute dtype."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        cast: Tensor,
        bias: Tensor | None,
        packed: Packed4 | None = None,
    ) -> None:
        self.weights, self.biases = list(weights), list(biases)
        self._cast, self.bias, self._packed = cast, bias, packed

    @property
    def cast(self) -> Tensor:
        return self._cast if self._packed is None else self._packed.read()

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def __call__(self, state: Tensor) -> Tensor:
        return torch.mm(state, self.cast.t()) if self.bias is None else torch.addmm(self.bias, state, self.cast.t())

    def alone(self) -> Projection:
        """Without an adapter."""
        return Projection((), (), self._cast, self.bias, self._packed)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of the state, and what `gradients` asks for."""
        return torch.mm(d_output, self.cast), d_output

    def gradients(self, d_output: Tensor, state: Tensor, middle: Tensor) -> list[Tensor]:
        """Of its parameters, summed in their own type."""
        rows = [len(weight) for weight in self.weights]
        found = list(torch.split(self._weight_gradient(d_output, state), rows))
        if self.biases:
            found += torch.split(d_output.sum(0, dtype=self.biases[0].dtype), rows)
        return found

    def _weight_gradient(self, d_output: Tensor, state: Tensor) -> Tensor:
        return weight_gradient(d_output, state, self.weights[0].dtype)


class PanelProjection(Projection):
    """`Projection` in float32 on a CPU, with strop's C kernels over one copy of the weights per direction."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        cast: Tensor,
        bias: Tensor | None,
        panels: tuple[Tensor, Tensor],
        products: Linear,
    ) -> None:
        super().__init__(weights, biases, cast, bias)
        (self._forward, self._backward), (self._outer, self._inner) = panels, cast.shape
        self._products = products

    def __call__(self, state: Tensor) -> Tensor:
        return self._products.product(state.contiguous(), self._forward, self._outer, self.bias)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        d_output = d_output.contiguous()
        return self._products.product(d_output, self._backward, self._inner), d_output

    def _weight_gradient(self, d_output: Tensor, state: Tensor) -> Tensor:
        return self._products.gradient(d_output.contiguous(), state.contiguous())


class AdaptedProjection(Projection):
    """`Projection` with a LoRA adapter, the only trained part; `masters` are A and B of each layer, in float32."""

    def __init__(self, cast: Tensor, bias: Tensor | None, adapter: Adapter, masters: Sequence[Tensor]) -> None:
        super().__init__((), (), cast, bias, adapter.packed)
        self.adapter, self.masters = adapter, list(masters)

    @property
    def parameters(self) -> list[Tensor]:
        return self.masters

    def __call__(self, state: Tensor) -> Tensor:
        return adapted(state, self.cast, self.bias, self.adapter)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        return state_pull(d_output, self.cast, self.adapter)

    def gradients(self, d_output: Tensor, state: Tensor, middle: Tensor) -> list[Tensor]:
        return adapter_pulls(d_output, middle, state, self.adapter, self.masters[0].dtype)
