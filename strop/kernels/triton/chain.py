"""Programmatic dependent launch: a kernel that is launched while the one before it still runs (compute capability 9.0).

Between two kernels of a CUDA graph the memory bus is idle for a few microseconds. A chained kernel is launched early
and waits for the end of the one before it. Before the wait it may only read what no kernel writes (weights).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

MOST = 64  # rows of a step that is chained: with more, kernels are long enough


def chained(rows: int, device: torch.device) -> dict[str, Any]:
    """What a launch is given besides."""
    is_chained = rows <= MOST and device.type == "cuda" and capability(device) >= (9, 0)
    return {"IS_CHAINED": is_chained, "launch_pdl": True} if is_chained else {"IS_CHAINED": False}


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """Of a GPU, asked once."""
    return torch.cuda.get_device_capability(device)


@triton.jit
def follow(IS_CHAINED: tl.constexpr):
    """Wait until all kernels before this one have ended."""
    if IS_CHAINED:
        gdc_wait()


@triton.jit
def release(IS_CHAINED: tl.constexpr):
    """Let the next kernel be brought, once all programs of this one have come so far.

    A long one does so late: programs that come while others still fill the multiprocessors crowd on the first free one.
    """
    if IS_CHAINED:
        gdc_launch_dependents()
