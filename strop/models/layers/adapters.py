"""LoRA adapters of a model's linear layers (Hu et al., 2106.09685), and their layout where layers are fused.

Parameters have the names of PEFT, so that each can read the other's files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers: their weights lie the other way round

from strop.kernels.adapted import Adapter
from strop.kernels.nf4 import Packed4, Scratch
from strop.models.layers.four_bit_linear import FourBitLinear

_NAME = "default"  # as peft calls the only one
_MARK = ".lora_"  # in names of parameters


class Adapted(torch.nn.Module):
    """Frozen linear layer with a LoRA adapter in float32, whose B starts at zero."""

    def __init__(self, base_layer: Any, rank: int, scale: float) -> None:
        super().__init__()
        self.base_layer, self.scale = base_layer, scale
        inputs, outputs = self._turned(base_layer.weight.t()).shape
        down, up = (torch.nn.Linear(*sizes, bias=False) for sizes in ((inputs, rank), (rank, outputs)))
        torch.nn.init.zeros_(up.weight)
        self.lora_A, self.lora_B = (torch.nn.ModuleDict({_NAME: side}) for side in (down, up))
        self.to(base_layer.weight.device)

    @property
    def masters(self) -> list[Tensor]:
        """A [r, I] and B [O, r]: what learns."""
        return [self.get_parameter(f"lora_{side}.{_NAME}.weight") for side in "AB"]

    @property
    def added(self) -> Tensor:
        """To the weight, as that lies."""
        down, up = self.masters
        return self._turned(up @ down) * self.scale

    @property
    def weight(self) -> Tensor:
        return self.base_layer.weight  # type: ignore[no-any-return]

    @property
    def dtype(self) -> torch.dtype:
        """Of the weight, once it is unpacked."""
        return self.base_layer.dtype if is_packed(self) else self.weight.dtype

    @property
    def bias(self) -> Tensor | None:
        return self.base_layer.bias  # type: ignore[no-any-return]

    @property
    def out_features(self) -> int:
        return len(self.masters[1])

    def forward(self, state: Tensor) -> Tensor:
        output: Tensor = self.base_layer(state)
        down, up = self.masters
        beside = F.linear(F.linear(state.to(down.dtype), down), up) * self.scale
        return output + beside.to(output.dtype)

    def _turned(self, matrix: Tensor) -> Tensor:
        return matrix.t() if isinstance(self.base_layer, Conv1D) else matrix


@dataclass(frozen=True, eq=False)
class Unadapted:
    """Base model without its adapters, over the same weights: the reference policy of LoRA training."""

    model: Any

    @property
    def config(self) -> Any:
        return self.model.config

    def get_output_embeddings(self) -> Any:
        return self.model.get_output_embeddings()


def is_adapter(name: str) -> bool:
    """Whether a parameter of this name is part of an adapter."""
    return _MARK in name


def is_adapted(module: Any) -> bool:
    """Whether an adapter stands beside this linear layer."""
    return isinstance(module, Adapted)


def masters(modules: Sequence[Any]) -> list[Tensor]:
    """A [r, I] and B [O, r] of the first layer, of the second, and so on: what learns."""
    return [each for module in modules for each in module.masters]


def room_for(modules: Sequence[Any], dtype: torch.dtype, scratch: Scratch) -> Adapter:
    """One of all layers that read the same input, still empty; its parts are those of `masters`, in a type.

    Weights in four bits are unpacked into the reader's `scratch`.
    """
    learned = masters(modules)
    shapes = [(len(down), len(up)) for down, up in zip(learned[::2], learned[1::2], strict=True)]
    room = Adapter.empty(learned[0].detach(), shapes, dtype, modules[0].scale)
    if not is_packed(modules[0]):
        return room
    layers = [module.base_layer for module in modules]
    parts = [(each.codes.detach().view(-1), each.scales.detach(), each.out_features) for each in layers]
    return replace(room, packed=Packed4(parts, layers[0].in_features, scratch))


def is_packed(module: Any) -> bool:
    """Whether the weight beside an adapter is held in four bits."""
    return isinstance(module, Adapted) and isinstance(module.base_layer, FourBitLinear)
