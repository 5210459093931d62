"""Exponential moving average of the weights as a policy (PPO-EWMA, 2110.00641), in place of old logprobs that were not
kept.

"Missing Old Logits" (2605.12070) sets its decay so that its mean age is the middle of the data's window of versions,
and restarts it when too few tokens survive mask and clip against it.
Papers: missing-old-logits
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import CheckpointError

_ALIVE = 0.9  # the paper's: below this share of tokens with a gradient the average is of no use
_NAME = "averaged"


@dataclass(eq=False)
class Average:
    """sum_k d^(t-k) theta_k / sum_k d^(t-k), d = window / (window + 2), in fp32: in bf16 a small change rounds away.

    Its mean age is d / (1 - d) = window / 2 versions. Dividing by the true sum of decays makes the first steps right.
    """

    window: int
    weights: dict[str, Tensor] = field(default_factory=dict)
    mass: float = 0.0  # the sum of decays; 0: the next weights begin it anew
    version: int = -1  # the newest in it

    @property
    def decay(self) -> float:
        return self.window / (self.window + 2)

    def add(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Take a version in, once."""
        if version <= self.version:
            return
        self.version, self.mass = version, self.decay * self.mass + 1
        if self.mass == 1 or not self.weights:
            self.weights = {name: each.detach().to("cpu", torch.float32, copy=True) for name, each in weights.items()}
            return
        for name, mean in self.weights.items():
            mean.lerp_(weights[name].detach().to("cpu", torch.float32), 1 / self.mass)

    def observe(self, alive_share: float) -> None:
        """Begin anew with the next weights if too few tokens had a gradient against this average."""
        if alive_share < _ALIVE:
            self.mass = 0.0

    def save(self, folder: Path) -> None:
        save_file(self.weights, folder / f"{_NAME}.safetensors")
        (folder / f"{_NAME}.json").write_text(json.dumps({"mass": self.mass, "version": self.version}) + "\n")

    def resume(self, folder: Path) -> None:
        try:
            facts = json.loads((folder / f"{_NAME}.json").read_text())
            self.weights = load_file(folder / f"{_NAME}.safetensors")
            self.mass, self.version = float(facts["mass"]), int(facts["version"])
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise CheckpointError(f"cannot read the averaged weights in {folder}: {error}") from error
