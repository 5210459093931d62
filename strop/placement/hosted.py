"""Engine on the event loop of another process, and serialization of its weights."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from strop.backends import Completion, WeightVersion
from strop.capabilities import Hurries, outermost
from strop.roles import Engine
from strop.types import IntArray, Sampling
from strop.workers.pickled_parts import unpacked

if TYPE_CHECKING:
    from torch import Tensor


class Hosted:
    """Remote interface of an engine; torch is loaded only where the engine has weights."""

    def __init__(self, path: Sequence[str], engine: NDArray[Any], computing: Mapping[str, Any]) -> None:
        sys.path += [each for each in path if each not in sys.path]  # before the engine, whose module may lie there
        self._engine = arrived(engine, computing)

    async def open(self, model: str) -> int:
        """Read the model; answers with the process that computes."""
        self._engine.open(Path(model))
        return os.getpid()

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return await self._engine.sample(prompt, sampling, key)

    async def load(self, version: WeightVersion, location: Any) -> str:
        weights = from_bytes(location) if isinstance(location, Mapping) else location
        return await self._engine.load(replace(version, location=weights))

    async def abort(self, key: int) -> None:
        self._engine.abort(key)

    async def hurry(self, keys: Sequence[int]) -> None:
        for _, engine in outermost(self._engine, Hurries):
            engine.hurry(keys)

    async def forget(self) -> None:
        self._engine.forget()

    async def ping(self) -> None:
        return None


def computing_here(threads: int) -> dict[str, Any]:
    """How an engine elsewhere has to compute, so that equal questions get equal bits."""
    torch = sys.modules.get("torch")
    return {"threads": threads, "deterministic": bool(torch and torch.are_deterministic_algorithms_enabled())}


def arrived(engine: NDArray[Any], computing: Mapping[str, Any]) -> Engine:
    """The engine that the parent sent; the process computes as it was told."""
    found: Engine = unpacked(engine)
    if "torch" in sys.modules:
        from strop.models.torch_setup import set_up

        set_up(computing["threads"], computing["deterministic"])
    return found


def as_bytes(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Type, shape and bytes of each: numpy, which can be mapped without a copy, does not know every type torch has."""
    import torch

    return {
        name: (
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy(),
        )
        for name, tensor in weights.items()
    }


def from_bytes(found: Mapping[str, Any]) -> dict[str, Tensor]:
    """The inverse, over the same memory."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the memory may be read-only, and nobody writes to it
        return {n: torch.from_numpy(b).view(getattr(torch, kind)).view(shape) for n, (kind, shape, b) in found.items()}
