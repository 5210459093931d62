"""VAS's guidance (2405.06639): the value itself, linearly.

Papers: vas
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from strop.generate.guided_decoding import Guidance


@dataclass(frozen=True)
class Vas(Guidance):
    """Adds strength * (V - mean V over the candidates), so that no mass moves between them and the rest."""

    strength: float = 3.0

    file: ClassVar[str] = "critic_weights.safetensors"

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor:
        offsets = self.strength * (told - told.mean(-1, keepdim=True))  # [C]
        return base.index_add(0, candidates, offsets.to(base.dtype))
