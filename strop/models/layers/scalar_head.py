"""Model with a linear head in place of the output layer, for value models: K numbers per state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from strop.errors import CheckpointError
from strop.models.layers.decoder_part import decoder_of
from strop.models.model import load_model


@dataclass(eq=False)
class Headed:
    """`body` maps tokens to states, `head` states to K numbers, zero at first."""

    body: Any
    head: torch.nn.Linear

    @classmethod
    def open(cls, model: Path, outputs: int, device: str) -> Headed:
        body = load_model(model, device=device)
        head = torch.nn.Linear(int(body.config.get_text_config().hidden_size), outputs, device=device)
        for parameter in head.parameters():  # zero and not random: nothing is expected before anything was seen
            torch.nn.init.zeros_(parameter)
        return cls(body, head)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """By the names under which value models are saved."""
        named: dict[str, Tensor] = {f"body.{name}": each for name, each in decoder_of(self.body).named_parameters()}
        return named | {f"head.{name}": each for name, each in self.head.named_parameters()}

    def load(self, path: Path) -> None:
        """Weights as a value model saved them."""
        try:
            weights = load_file(path)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the value model in {path}: {error}") from error
        mine = self.parameters
        if {name: tensor.shape for name, tensor in weights.items()} != {n: t.shape for n, t in mine.items()}:
            raise CheckpointError(f"{path} is not of this model: {len(weights)} tensors, {len(mine)} expected")
        with torch.no_grad():
            for name, tensor in weights.items():
                mine[name].copy_(tensor)
