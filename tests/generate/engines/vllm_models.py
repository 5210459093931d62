"""Weights for tests of vLLM."""

from __future__ import annotations

import numpy as np
import torch

from strop.models.loading.model_names import model_folder
from strop.types import Sampling

POCKET = model_folder("pocket")
PROMPT = np.arange(60) % 50 + 5
LONG = Sampling(max_tokens=30)


def moved(weights: dict[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Others near them."""
    generator = torch.Generator().manual_seed(seed)
    return {name: each + 0.02 * torch.randn(each.shape, generator=generator) for name, each in weights.items()}
