"""FP8 linear layers of a model; embedding, output layer and norms keep their dtype.

Trained weights keep their dtype and are quantized once after every change; an engine holds only the FP8 numbers, and
weight updates send only those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from strop.errors import ConfigurationError, nearest
from strop.kernels.eight_bits import (
    BLOCK,
    Eights,
    Product,
    encode,
    encode_squares,
    multiplies_eights,
    multiply,
    reference_multiply,
)
from strop.models.layers.decoder_part import freeze_tower, model_class, named_decoder_modules
from strop.models.loading.check_folder import read_config
from strop.models.model import load_model
from strop.models.tokens.mask_token import refuse_masks

MATMUL_PRECISIONS = ("plain", "fp8")  # how engine and trainer may multiply
_LAYER, _WEIGHT, _CODES, _SCALES = "layers.", ".weight", ".codes", ".scales"  # in names


class EightBitLinear(nn.Linear):
    """Trainable linear layer whose weights are quantized to FP8 once after every change."""

    _held: tuple[int, Eights] | None = None

    def held(self) -> Eights:
        """[O, I], the weight as eight bits hold it."""
        changes = self.weight._version
        if self._held is None or self._held[0] != changes:
            self._held = changes, held_of(self.weight.detach())
        return self._held[1]

    def __getstate__(self) -> dict[str, Any]:
        """A copy counts its own changes: it rounds anew."""
        return {**self.__dict__, "_held": None}

    def forward(self, input: Tensor) -> Tensor:
        state = input.reshape(-1, input.shape[-1])
        kind = input.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else input.dtype
        found: Tensor = Product.apply(state, self.weight, self.held(), dtype)  # type: ignore[no-untyped-call]
        if self.bias is not None:
            found = found + self.bias.to(dtype)
        return found.view(*input.shape[:-1], -1)


class HeldLinear(nn.Module):
    """Frozen linear layer with FP8 codes and scales only."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        held = held_of(linear.weight.detach())
        self.codes, self.scales = (nn.Parameter(each, requires_grad=False) for each in held[:2])
        self.bias, self.in_features, self.share = linear.bias, linear.in_features, held.share
        self._wide: tuple[int, Tensor] | None = None

    @property
    def eights(self) -> Eights:
        return Eights(self.codes.detach(), self.scales.detach(), self.in_features, self.share)

    def forward(self, input: Tensor) -> Tensor:
        state = input.reshape(-1, self.in_features)
        if multiplies_eights(state.device):
            found = multiply(encode(state), self.eights, self.bias, input.dtype)
        else:
            found = reference_multiply(encode(state).read(), self._read(), self.bias, input.dtype)
        return found.view(*input.shape[:-1], -1)

    def _read(self) -> Tensor:
        """[O, I], once for every change."""
        changes = self.codes._version
        if self._wide is None or self._wide[0] != changes:
            self._wide = changes, self.eights.read()
        return self._wide[1]


def check_matmul_precision(owner: str, matmul_precision: str) -> None:
    """Refuse those that there are none of."""
    if matmul_precision not in MATMUL_PRECISIONS:
        raise ConfigurationError(
            f"{owner} has no matmul_precision={matmul_precision!r}: {nearest(matmul_precision, MATMUL_PRECISIONS)}"
        )


def held_of(weight: Tensor) -> Eights:
    """[O, I] in squares."""
    found, _ = Eights.squares([len(weight)], weight.shape[1], weight.device)
    encode_squares(weight, found)
    return found


def in_eight_bits(model: Any) -> None:
    """From here on its layers' products are of eight bits; names and weights are the same."""
    for _, module in _linear(model):
        module.__class__ = EightBitLinear


def outline(folder: Path, matmul_precision: str = "plain") -> Any:
    """The model that this folder describes, of which no number is in memory: its shape counts."""
    with torch.device("meta"):
        model = model_class(folder).from_config(read_config(folder), dtype=torch.float32)
    freeze_tower(model)
    if matmul_precision == "fp8":
        in_eight_bits(model)
    return model


@contextmanager
def plain_matmuls(model: Any) -> Iterator[None]:
    """Within it the layers of `in_eight_bits` multiply what they learn."""
    linears: list[nn.Module] = [each for each in model.modules() if isinstance(each, EightBitLinear)]
    for module in linears:
        module.__class__ = nn.Linear
    try:
        yield
    finally:
        for module in linears:
            module.__class__ = EightBitLinear


@torch.no_grad()
def load_held(folder: Path, dtype: torch.dtype, device: str, matmul_precision: str) -> Any:
    """As an engine holds it: in eight bits there is nothing else of its layers' weights, let go one after the other."""
    check_matmul_precision("an engine", matmul_precision)
    refuse_masks(folder)
    model = load_model(folder, dtype, device)
    found = _linear(model) if matmul_precision == "fp8" else []
    while found:
        name, module = found.pop()
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, HeldLinear(module))
    return model


def eight_bit_weights(model: Any) -> list[Tensor]:
    """Of its layers, where what is multiplied is held in eight bits."""
    return [module.weight for module in model.modules() if isinstance(module, EightBitLinear)]


def bytes_in_eight_bits(weights: Sequence[Tensor]) -> int:
    """Codes, and scales of blocks of a row."""
    return sum(int(each.numel()) for each in weights) * (BLOCK + 4) // BLOCK


def is_held(module: Any) -> bool:
    return isinstance(module, HeldLinear)


def joined(modules: Sequence[Any]) -> Eights:
    """Layers that read the same input as one, of which their modules keep views."""
    rows = [len(module.codes) for module in modules]
    whole, parts = Eights.squares(rows, modules[0].in_features, modules[0].codes.device)
    for module, part in zip(modules, parts, strict=True):
        part.codes.copy_(module.codes)
        part.scales.copy_(module.scales)
        module.codes.data, module.scales.data = part.codes, part.scales
    return whole


@torch.no_grad()
def encoded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by name as an engine of eight bits holds them: of those of layers their codes and scales."""
    return dict(_encoded(weights))


def is_code(name: str) -> bool:
    """Whether these are codes or scales, which are never rounded."""
    return name.endswith((_CODES, _SCALES))


def _encoded(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, weight in weights.items():
        if weight.dim() == 2 and _LAYER in name:
            held = held_of(weight)
            yield name.removesuffix(_WEIGHT) + _CODES, held.codes
            yield name.removesuffix(_WEIGHT) + _SCALES, held.scales
        else:
            yield name, weight


def _linear(model: Any) -> list[tuple[str, nn.Linear]]:
    """Those of its layers, by name; models that multiply in other ways as well are refused."""
    named = named_decoder_modules(model)
    if strange := sorted({type(module).__name__ for _, module in named if _multiplies_otherwise(module)}):
        raise ConfigurationError(
            f"8-bit matmul is for torch.nn.Linear alone; {type(model).__name__} multiplies in "
            f'{", ".join(strange)}, too: set matmul_precision="plain" for engine and trainer'
        )
    return [(name, module) for name, module in named if type(module) is nn.Linear and _LAYER in name]


def _multiplies_otherwise(module: nn.Module) -> bool:
    if type(module) is nn.Linear or isinstance(module, nn.Embedding):
        return False
    return any(weight.dim() > 1 for weight in module.parameters(recurse=False))


@torch.no_grad()
def rounding(model: Any) -> float:
    """How far the weights that are multiplied are from those that learn, relative to these."""
    linears = [each for each in model.modules() if isinstance(each, EightBitLinear)]
    apart = sum(float((each.held().read() - each.weight).square().sum()) for each in linears)
    return float((apart / sum(float(each.weight.square().sum()) for each in linears)) ** 0.5)
