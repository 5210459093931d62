"""Adapters that peft put beside the linear layers of a model, and how those of one product lie together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strop.kernels.adapted import Adapter

ADAPTER = "default"  # as peft calls the only one
_MARK = ".lora_"  # in names of parameters


@dataclass(frozen=True, eq=False)
class Unadapted:
    """A model without its adapters, over the same weights: what training began with."""

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
    return any(name == "lora_A" for name, _ in module.named_children())


def masters(modules: Sequence[Any]) -> list[Tensor]:
    """A [r, I] and B [O, r] of the first layer, of the second, and so on: what learns."""
    return [side[ADAPTER].weight for module in modules for side in (module.lora_A, module.lora_B)]


def room_for(modules: Sequence[Any], dtype: torch.dtype) -> Adapter:
    """One of all layers that read the same input, still empty; its parts are those of `masters`, in a type."""
    learned = masters(modules)
    shapes = [(len(down), len(up)) for down, up in zip(learned[::2], learned[1::2], strict=True)]
    return Adapter.empty(learned[0].detach(), shapes, dtype, float(modules[0].scaling[ADAPTER]))
