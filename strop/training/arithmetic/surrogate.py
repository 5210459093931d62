"""PPO's clipped surrogate (1707.06347) with an optional dual clip (1912.09729), as a function of the ratio."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped(ratio: Tensor, advantages: Tensor, low: float, high: float, dual: float | None = None) -> Tensor:
    """min(r A, clip(r, 1 - low, 1 + high) A), to be maximized; with `dual`, at least dual * A where A < 0: [T]."""
    objective = torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    if dual is None:
        return objective
    return torch.where(advantages < 0, torch.maximum(objective, dual * advantages), objective)
