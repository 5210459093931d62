"""Value network: a copy of the model with a linear head, read at the states before and after each completion token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import ConfigurationError
from strop.models.layers.scalar_head import Headed
from strop.models.optimizers.adamw import Optimizer
from strop.training.machine.packed_sequences import Sequences
from strop.training.pack import closed, fill, lay_out
from strop.types import Rollout

BEFORE, AFTER = 0, 1  # which of the two states of a written token
_BETAS, _CLIP_NORM = (0.9, 0.999), 1.0


@dataclass(eq=False)
class Part:
    """Rollouts of one forward pass."""

    sequences: Sequences
    rows: Tensor  # [R], the written tokens
    rollouts: Sequence[Rollout]

    @property
    def last(self) -> list[int]:
        """Which of the R tokens are the last ones of their rollouts: [A]."""
        return (np.cumsum([rollout.num_tokens for rollout in self.rollouts]) - 1).tolist()  # type: ignore[no-any-return]

    def column(self, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """One number per written token from one array per rollout: [R]."""
        found = torch.from_numpy(np.concatenate([*arrays, np.zeros(0)]).astype(np.float32))
        if len(found) != len(self.rows):
            raise ConfigurationError(f"{len(self.rows)} completion tokens need a value each, got {len(found)}")
        return found.to(self.rows.device)


@dataclass(eq=False)
class ValueBody:
    """Trained value network."""

    model: Headed
    optimizer: Optimizer
    max_tokens: int
    device: str

    @classmethod
    def open(cls, model: Path, outputs: int, max_tokens: int, device: str) -> ValueBody:
        headed = Headed.open(model, outputs, device)
        return cls(headed, Optimizer(headed.parameters, _BETAS, 0.0, _CLIP_NORM), max_tokens, device)

    @property
    def head(self) -> torch.nn.Linear:
        return self.model.head

    def parts(self, rollouts: Sequence[Rollout]) -> list[Part]:
        """Rollouts that wrote something, as many per pass as fit."""
        written = [rollout for rollout in rollouts if rollout.num_tokens]
        if not written:
            return []
        contexts = lay_out([closed(rollout) for rollout in written])
        starts, parts = contexts.starts, []
        for first, last in fill(starts, self.max_tokens):
            low, high = starts[first], starts[last]
            lengths = np.unique(contexts.segments[low:high], return_counts=True)[1].tolist()
            tokens, positions = (torch.from_numpy(each[low:high]) for each in (contexts.tokens, contexts.positions))
            rows = torch.from_numpy(np.flatnonzero(contexts.written[low:high])).to(self.device)
            parts.append(Part(Sequences(tokens, positions, lengths, self.device), rows, written[first:last]))
        return parts

    def read(self, part: Part) -> Tensor:
        """[R, 2, K], at the state in which each written token was chosen and at the one after it."""
        hidden = part.sequences.hidden_states(self.model.body)
        outputs: Tensor = self.head(hidden[torch.stack([part.rows - 1, part.rows], 1)])
        return outputs

    @torch.no_grad()
    def told(self, rollouts: Sequence[Rollout]) -> dict[str, NDArray[np.float32]]:
        """What it says of each rollout, by id: [N, 2, K]."""
        found: dict[str, NDArray[np.float32]] = {}
        for part in self.parts(rollouts):
            outputs = self.read(part).float().cpu().numpy()
            ends = np.cumsum([rollout.num_tokens for rollout in part.rollouts])[:-1]
            found |= dict(zip([rollout.id for rollout in part.rollouts], np.split(outputs, ends), strict=True))
        return found

    def step(self, parts: Sequence[Part], loss: Callable[[Tensor, Part], Tensor], learning_rate: float) -> float:
        """One optimizer step on the sum of `loss(outputs [R, 2, K], part)`; returns the gradient's norm."""
        tasks = ", ".join(sorted({rollout.task.id for part in parts for rollout in part.rollouts}))
        losses = (loss(self.read(part), part) for part in parts)
        return self.optimizer.descend(losses, learning_rate, f"value model with tasks {tasks}")

    def save(self, folder: Path, name: str) -> None:
        self.optimizer.save_whole(folder, name)

    def resume(self, folder: Path, name: str) -> None:
        self.model.load(folder / f"{name}_weights.safetensors")
        self.optimizer.resume(folder, name)
