"""Which engine serves a device best."""

from __future__ import annotations

from strop.generate.engines.paged import PagedEngine
from strop.generate.engines.torch import TorchEngine
from strop.machines import Engine


def engine_on(device: str) -> Engine:
    """The paged engine on a GPU, in bfloat16; the plain one elsewhere."""
    return PagedEngine(device=device) if device.startswith("cuda") else TorchEngine(device=device)
