"""Hidden states of whole sequences under a frozen model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.models.layers.attention import Packed
from strop.models.model import hidden_states
from strop.types import IntArray


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
