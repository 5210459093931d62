"""How torch computes in every process of a run: with how many threads, and whether equal input gives equal bits."""

from __future__ import annotations

import torch


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
