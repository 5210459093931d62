"""Kernels that are on their multiprocessors before the one before them has ended, on GPUs that can (compute 9.0).

Between two kernels of a graph the memory stands still for a few microseconds: one ends, the next is brought, its first
loads are under way. One that is chained is brought while the one before it runs, and waits there for its end. It may
read what no kernel writes (weights) before it waits, and nothing else.
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
