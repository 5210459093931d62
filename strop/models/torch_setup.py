"""Torch settings of every process of a run: threads, determinism, share of GPU memory, a thread beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

Found = TypeVar("Found")


def set_up(threads: int, is_deterministic: bool) -> None:
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(is_deterministic, warn_only=True)
    # else torch fills every new tensor with NaN first, which takes up to a tenth of a step
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def device_problem(device: str) -> str:
    """Why nothing can be computed there, in a sentence; empty where it can."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        return f"there is no device {device!r}: cpu, cuda, or cuda:1 for the second GPU"
    if kind == "cuda" and not torch.cuda.is_available():
        return f"there is no GPU that this torch can use, so not device={device!r}: leave it at cpu"
    if kind == "cuda" and (torch.device(device).index or 0) >= torch.cuda.device_count():
        return f"there is no device {device!r}: this machine has {torch.cuda.device_count()} GPUs, numbered from 0"
    return ""


def share_gpu(share: float) -> None:
    """Let this process have no more than this share of the memory of each GPU; others have the rest."""
    for index in range(torch.cuda.device_count()):
        torch.cuda.set_per_process_memory_fraction(share, index)


def gpu_memory(device: str) -> tuple[int, int]:
    """Bytes of a GPU that this process can still take, and those it may hold in all."""
    place = torch.device(device)
    index = torch.cuda.current_device() if place.index is None else place.index
    free, total = torch.cuda.mem_get_info(index)
    most = int(torch.cuda.get_per_process_memory_fraction(index) * total)
    return min(free, max(most - torch.cuda.memory_reserved(device), 0)), most


@dataclass
class BesideLoop:
    """Single worker thread for computations.

    A new thread would compute with as many torch threads as the machine has cores, and bits depend on that number.
    """

    _thread: ThreadPoolExecutor | None = field(default=None, init=False, repr=False, compare=False)

    async def __call__(self, work: Callable[..., Found], *given: Any) -> Found:
        if self._thread is None:
            threads = torch.get_num_threads()
            self._thread = ThreadPoolExecutor(1, "scores", initializer=torch.set_num_threads, initargs=(threads,))
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
