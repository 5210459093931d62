"""Prompts through a model in packed passes, read at the last token of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.models.layers.attention import Packed
from strop.models.model import hidden_states
from strop.types import IntArray


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
