"""Truncated importance sampling (Ionides, 2008; Yao et al., 2025): the ratio, but never above a cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from strop.types import Batch


@dataclass(frozen=True)
class Truncated:
    """Weigh a token by min(policy / behaviour, cap), detached.

    The ratio is that of the weights being trained, so it covers both staleness and a mismatch between engine and
    trainer. It belongs with losses that have no ratio of their own (Reinforce), or the ratio is applied twice.
    """

    cap: float = 2.0

    needs: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
        return batch.log_ratio(logprobs, batch.behavior_logprobs).detach().exp().clamp(max=self.cap)  # [T]
