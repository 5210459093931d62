"""A critic that begins as another run's value model (2410.17621): what judged lines says at first what to expect.

Papers: prm-code
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strop.training.values.critic import Critic
from strop.types import FilePath


@dataclass
class BegunCritic(Critic):
    """PPO's critic with the weights of `checkpoints/step-N/values` of another run; empty: as any critic begins."""

    folder: FilePath = ""

    def open(self, model: Path, seed: int) -> None:
        super().open(model, seed)
        if self.folder:
            self._ready().model.load(Path(self.folder) / "critic_weights.safetensors")
