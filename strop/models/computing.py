"""How torch computes in every process of a run: with how many threads, and whether equal input gives equal bits."""

from __future__ import annotations

import torch


def set_up(threads: int, is_deterministic: bool) -> None:
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(is_deterministic, warn_only=True)
    # else torch fills every new tensor with NaN first, which takes up to a tenth of a step
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
