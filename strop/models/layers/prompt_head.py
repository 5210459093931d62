"""A copy of the model with a linear head that is read at the last token of prompts, and learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from strop.models.layers.prompt_passes import last_states, passes
from strop.models.layers.scalar_head import Headed
from strop.models.optimizers.adamw import Optimizer
from strop.types import IntArray

_BETAS, _CLIP_NORM = (0.9, 0.999), 1.0


@dataclass(eq=False)
class PromptHead:
    """One number of each prompt, 0 before anything was learned."""

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
