"""A model whose linear layers multiply 8-bit numbers: those of its layers, not embedding, head and norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from strop.errors import ConfigurationError
from strop.kernels.eight_bits import Product, rounded_weight

PRODUCTS = ("plain", "fp8")  # how engine and trainer may multiply


class EightBitLinear(nn.Linear):
    """Weights stay what they are and learn; what is multiplied is rounded once for every change of theirs."""

    _held: tuple[int, Tensor] | None = None

    def held(self) -> Tensor:
        """[O, I], the weight as eight bits hold it."""
        changes = self.weight._version
        if self._held is None or self._held[0] != changes:
            with torch.no_grad():
                self._held = changes, rounded_weight(self.weight)
        return self._held[1]

    def __getstate__(self) -> dict[str, Any]:
        """A copy counts its own changes: it rounds anew."""
        return {**self.__dict__, "_held": None}

    def forward(self, input: Tensor) -> Tensor:
        state = input.reshape(-1, input.shape[-1])
        found: Tensor = Product.apply(state, self.weight, self.held())  # type: ignore[no-untyped-call]
        if self.bias is not None:
            found = found + self.bias
        return found.view(*input.shape[:-1], -1)


def in_eight_bits(model: Any) -> None:
    """From here on its layers' products are of eight bits; names and weights are the same."""
    modules = list(model.base_model.modules())
    if strange := sorted({type(module).__name__ for module in modules if _multiplies_otherwise(module)}):
        raise ConfigurationError(
            f"products of 8-bit numbers are those of torch.nn.Linear; {type(model).__name__} multiplies in "
            f'{", ".join(strange)}, too: set products="plain" for engine and trainer'
        )
    for module in modules:
        if type(module) is nn.Linear:
            module.__class__ = EightBitLinear


def _multiplies_otherwise(module: nn.Module) -> bool:
    if type(module) is nn.Linear or isinstance(module, nn.Embedding):
        return False
    return any(weight.dim() > 1 for weight in module.parameters(recurse=False))


@torch.no_grad()
def rounding(model: Any) -> float:
    """How far the weights that are multiplied are from those that learn, relative to these."""
    linears = [each for each in model.modules() if isinstance(each, EightBitLinear)]
    apart = sum(float((each.held() - each.weight).square().sum()) for each in linears)
    return float((apart / sum(float(each.weight.square().sum()) for each in linears)) ** 0.5)
