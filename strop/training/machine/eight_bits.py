"""FP8 projection of a decoder block: fused linear layers of one input, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from strop.kernels.eight_bits import Eights, encode, multiply, state_pull, weight_pull
from strop.training.machine.projection import Projection


class EightBitProjection(Projection):
    """`held` are its stacked FP8 weights, `parts` those of each layer."""

    def __init__(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor], held: Eights, parts: Sequence[Eights],
        bias: Tensor | None,
    ) -> None:  # fmt: skip
        super().__init__(weights, biases, held.codes, bias)
        self._held, self._parts = held, parts

    def __call__(self, state: Tensor) -> Tensor:
        return multiply(encode(state), self._held, self.bias, state.dtype)

    def back(self, d_output: Tensor) -> tuple[Tensor, Tensor]:
        """Layer by layer: outputs of two share no scale, nor do their weights."""
        pulls = torch.split(d_output, [len(part.codes) for part in self._parts], 1)
        first, *rest = (state_pull(pull, part) for pull, part in zip(pulls, self._parts, strict=True))
        for each in rest:
            first += each
        return first, d_output

    def gradients(self, d_output: Tensor, state: Tensor, middle: Tensor) -> list[Tensor]:
        rows = [len(weight) for weight in self.weights]
        found = list(torch.split(weight_pull(d_output, state, self.weights[0].dtype), rows))
        if self.biases:
            found += torch.split(d_output.sum(0, dtype=self.biases[0].dtype), rows)
        return found
