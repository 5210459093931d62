"""Which engine serves a device best."""

from __future__ import annotations

import torch

from strop.generate.engines.paged import PagedEngine
from strop.generate.engines.torch import TorchEngine
from strop.roles import Engine


def engine_on(device: str) -> Engine:
    """The paged engine on a GPU, in bfloat16; the plain one elsewhere."""
    return PagedEngine(device=device) if torch.device(device).type == "cuda" else TorchEngine(device=device)
