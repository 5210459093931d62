"""An engine that proves what it was given, and a trainer as far as a channel knows it; quick to start elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strop.backends import WeightVersion
from tests.placement.light import Letters

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Frozen:
    """Weights of types that numpy does and does not have, one of them transposed."""

    def weights(self) -> dict[str, Tensor]:
        import torch

        return {"a": torch.arange(6.0).view(2, 3).t(), "b": torch.tensor(1.5), "c": torch.ones(3, dtype=torch.bfloat16)}


@dataclass
class Scales(Letters):
    """Answers with the fingerprint of the tensors it was really given."""

    async def load(self, version: WeightVersion) -> str:
        from strop.weights.fingerprint import fingerprint

        return fingerprint(version.location)
