"""Default engine for a device: paged on a GPU, plain torch on a CPU, vLLM on request."""

from __future__ import annotations

from typing import Literal, TypeAlias

from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.vllm.vllm_engine import VllmEngine
from strop.roles import Engine

EngineName: TypeAlias = Literal["own", "vllm"]


def engine_on(device: str, name: EngineName = "own") -> Engine:
    """The paged engine on a GPU, in bfloat16; the plain one elsewhere; vLLM where it is asked for."""
    is_gpu = device.startswith("cuda")
    if name == "vllm":
        return VllmEngine(device=device, dtype="bfloat16" if is_gpu else "float32")
    return PagedEngine(device=device) if is_gpu else TorchEngine(device=device)
