"""A loss that is only looked at (the golden measure of teacher hacking, 2502.02671): its figures, and no gradient.

Papers: teacher-hacking
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.roles import Loss
from strop.training.batch import Batch, Output
from strop.types import Metrics


@dataclass(frozen=True)
class Watched(Loss):
    """0 at every token, with the figures of `inner` under `name/`."""

    inner: Loss
    name: str = "watched"  # before the names of its figures

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigurationError("Watched needs a name, or its figures would be taken for those of a loss")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        with torch.no_grad():
            _, figures = self.inner(output, batch)
        return torch.zeros_like(output.logprobs), {f"{self.name}/{name}": value for name, value in figures.items()}
