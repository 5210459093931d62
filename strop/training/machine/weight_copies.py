"""Low-precision copies of trained weights for the forward pass, refreshed when a weight has changed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from strop.kernels.cpu.linear import Linear
from strop.kernels.cpu.panels import panels_for
from strop.kernels.eight_bits import Eights, encode_squares
from strop.kernels.nf4 import Scratch
from strop.models.layers.fused_linear import stacked


class Rounding:
    """Copies of parameters in another dtype, fused where they belong to one product; refreshed when any has changed."""

    def __init__(self, dtype: torch.dtype, products: Linear | None = None) -> None:
        self.dtype = dtype
        self.products = products  # of our own, where weights are read by them
        self.scratch = Scratch(dtype)  # of weights in four bits
        self._sources: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._encoded: list[tuple[Eights, Tensor]] = []
        self._panels: list[tuple[Tensor, Tensor, Tensor]] = []
        self._packed: list[Tensor] = []  # weights that lie in panels
        self._versions: list[int] = []

    def of(self, weights: Sequence[Tensor]) -> Tensor:
        """A place for these, which is filled by `refresh`; the parameters themselves where nothing has to be done."""
        first = weights[0]
        if len(weights) == 1 and first.dtype == self.dtype:
            return first.detach()
        if first.dtype == self.dtype != torch.float32:  # held narrow for want of room: no copies
            return stacked(weights)
        rows = [len(weight) for weight in weights]
        whole = first.new_empty(sum(rows), *first.shape[1:], dtype=self.dtype)
        self.into(torch.split(whole, rows), weights)
        return whole

    def into(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        """Let `refresh` fill these from those."""
        self._sources += [source.detach() for source in sources]
        self._targets += targets

    def in_eight_bits(self, weights: Sequence[Tensor]) -> tuple[Eights, list[Eights]]:
        """The same in eight bits, and the place of each."""
        first = weights[0]
        whole, parts = Eights.squares([len(weight) for weight in weights], first.shape[1], first.device)
        self._encoded += zip(parts, [weight.detach() for weight in weights], strict=True)
        return whole, parts

    def in_panels(self, cast: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """What `of` made of these, in the order in which `products` read it forward and backward."""
        panels = panels_for(cast), panels_for(cast.t())
        self._panels.append((cast, *panels))
        self._packed += [weight.detach() for weight in weights]
        return panels

    @torch.no_grad()
    def refresh(self) -> None:
        encoded = [weight for _, weight in self._encoded]
        versions = [source._version for source in (*self._sources, *encoded, *self._packed)]
        if versions != self._versions:
            if self._sources:
                torch._foreach_copy_(self._targets, self._sources)
            for place, weight in self._encoded:
                encode_squares(weight, place)
            self._pack()
            self._versions = versions

    def _pack(self) -> None:
        for cast, forward, backward in self._panels:
            assert self.products is not None
            self.products.pack(cast, forward)
            self.products.pack(cast.t(), backward)
