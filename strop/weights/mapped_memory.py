"""Weights in memory that processes share: written once, read in place by any number of them.

On Linux the memory is an unnamed file (memfd), freed with the last process that holds it; elsewhere it is a temporary
file that its owner removes.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

_ALIGNMENT = 64  # bytes, for vector loads


class SharedWeights(Mapping[str, Tensor]):
    """Tensors by name over one shared buffer; `address` is all that another process needs to map it."""

    def __init__(self, address: dict[str, Any], memory: mmap.mmap) -> None:
        self.address = address
        self._tensors = {name: _view(memory, *place) for name, place in address["layout"].items()}

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def fits(self, weights: Mapping[str, Tensor]) -> bool:
        """Whether these weights have the same names, shapes and types."""
        return {k: (v.shape, v.dtype) for k, v in self.items()} == {k: (v.shape, v.dtype) for k, v in weights.items()}

    @torch.no_grad()
    def write(self, weights: Mapping[str, Tensor]) -> None:
        """Overwrite everything."""
        for name, tensor in self._tensors.items():
            tensor.copy_(weights[name])


def allocate(weights: Mapping[str, Tensor]) -> SharedWeights:
    """Room for weights like these, owned by this process."""
    layout, size = _lay_out(weights)
    descriptor, path, forget = _memory()
    os.ftruncate(descriptor, size)
    shared = SharedWeights({"path": path, "size": size, "layout": layout}, mmap.mmap(descriptor, size))
    weakref.finalize(shared, forget)
    return shared


def attach(address: Mapping[str, Any]) -> SharedWeights:
    """Map what another process allocated; writing here reaches nobody."""
    descriptor = os.open(address["path"], os.O_RDONLY)
    try:
        memory = mmap.mmap(descriptor, address["size"], access=mmap.ACCESS_COPY)
    finally:
        os.close(descriptor)
    return SharedWeights(dict(address), memory)


class Alternating:
    """Two alternating buffers: the last version stays complete while the next is written."""

    def __init__(self) -> None:
        self._buffers: list[SharedWeights | None] = [None, None]
        self._turn = 0

    def write(self, weights: Mapping[str, Tensor]) -> SharedWeights:
        """Only to be called once every reader has left what was written before the last time."""
        self._turn = 1 - self._turn
        buffer = self._buffers[self._turn]
        if buffer is None or not buffer.fits(weights):
            buffer = self._buffers[self._turn] = allocate(weights)
        buffer.write(weights)
        return buffer


def _memory() -> tuple[int, str, Any]:
    """A descriptor, a path by which other processes of this user can open it, and how to let go of it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("strop-weights")
        return descriptor, f"/proc/{os.getpid()}/fd/{descriptor}", lambda: os.close(descriptor)
    descriptor, path = tempfile.mkstemp(prefix="strop-weights-")

    def forget() -> None:
        os.close(descriptor)
        os.unlink(path)  # noqa: PTH108 (runs while the interpreter ends)

    return descriptor, path, forget


def _lay_out(weights: Mapping[str, Tensor]) -> tuple[dict[str, list[Any]], int]:
    """For each tensor its type, shape and first byte; and the bytes of all."""
    layout, end = {}, 0
    for name, tensor in weights.items():
        layout[name] = [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), end]
        end += -(-tensor.numel() * tensor.element_size() // _ALIGNMENT) * _ALIGNMENT
    return layout, max(end, _ALIGNMENT)


def _view(memory: mmap.mmap, kind: str, shape: list[int], start: int) -> Tensor:
    dtype: torch.dtype = getattr(torch, kind)
    count = torch.Size(shape).numel()
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=start) if count else torch.empty(0, dtype=dtype)
    return flat.view(shape)
