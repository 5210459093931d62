"""Hidden states at the last token of prompts, in packed passes, and a linear head on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.models.layers.attention import Packed
from strop.models.layers.scalar_head import Headed
from strop.models.model import hidden_states
from strop.models.optimizers.adamw import Optimizer
from strop.types import IntArray

# Hidden states of whole sequences under a frozen model.


@torch.no_grad()
def states_of(model: Any, sequences: Sequence[IntArray], most: int) -> list[Tensor]:
    """The last layer's states at each token of each sequence: [T, H]; `most` sequences per pass."""
    found: list[Tensor] = []
    for first in range(0, len(sequences), most):
        part = sequences[first : first + most]
        lengths = [len(tokens) for tokens in part]
        tokens = torch.from_numpy(np.concatenate(part))
        positions = torch.cat([torch.arange(length) for length in lengths])
        found += torch.split(hidden_states(model, tokens, positions, Packed(lengths)), lengths)
    return found


# Prompts through a model in packed passes, read at the last token of each.


def last_states(model: Any, prompts: Sequence[IntArray], device: str) -> Tensor:
    """The state after each prompt, from which its first completion token would be chosen: [N, H]."""
    lengths = np.array([len(prompt) for prompt in prompts])
    tokens = torch.from_numpy(np.concatenate(list(prompts))).to(device)
    positions = torch.from_numpy(np.concatenate([np.arange(length) for length in lengths])).to(device)
    hidden = hidden_states(model, tokens, positions, Packed(lengths, device))
    return hidden[torch.from_numpy(np.cumsum(lengths) - 1).to(device)]


def passes(prompts: Sequence[IntArray], max_tokens: int) -> list[slice]:
    """Consecutive prompts of at most `max_tokens` tokens together, or one that is longer."""
    found, first, count = list[slice](), 0, 0
    for place, prompt in enumerate(prompts):
        if count and count + len(prompt) > max_tokens:
            found.append(slice(first, place))
            first, count = place, 0
        count += len(prompt)
    return [*found, slice(first, len(prompts))] if len(prompts) else []


# A copy of the model with a linear head that is read at the last token of prompts, and learns.

_BETAS, _CLIP_NORM = (0.9, 0.999), 1.0


@dataclass(eq=False)
class PromptHead:
    """Linear head with one output per prompt, 0 at the start."""

    model: Headed
    optimizer: Optimizer
    max_tokens: int  # of one forward pass
    device: str

    @classmethod
    def open(cls, model: Path, max_tokens: int, device: str) -> PromptHead:
        headed = Headed.open(model, 1, device)
        return cls(headed, Optimizer(headed.parameters, _BETAS, 0.0, _CLIP_NORM), max_tokens, device)

    def read(self, prompts: Sequence[IntArray]) -> Tensor:
        """[N], in one pass."""
        return self.model.head(last_states(self.model.body, prompts, self.device))[:, 0]  # type: ignore[no-any-return]

    @torch.no_grad()
    def told(self, prompts: Sequence[IntArray]) -> Tensor:
        """What it says of each prompt: [N]."""
        parts = [self.read(prompts[part]).float().cpu() for part in passes(prompts, self.max_tokens)]
        return torch.cat(parts) if parts else torch.zeros(0)

    def step(self, prompts: Sequence[IntArray], loss: Callable[[Tensor, slice], Tensor], learning_rate: float) -> float:
        """One optimizer step on the sum of `loss(numbers [n], which prompts)`; returns the gradient's norm."""
        losses = (loss(self.read(prompts[part]), part) for part in passes(prompts, self.max_tokens))
        return self.optimizer.descend(losses, learning_rate, f"the head at {len(prompts)} prompts")

    def save(self, folder: Path, name: str) -> None:
        self.optimizer.save_whole(folder, name)

    def resume(self, folder: Path, name: str) -> None:
        self.model.load(folder / f"{name}_weights.safetensors")
        self.optimizer.resume(folder, name)
