"""Data parallelism over threads: a micro-batch in as many parts as there are threads, within one process.

Threads that share every product wait for each other after each of them, and for an engine on one of the cores. With a
part each they wait once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from strop.training.batch import Batch
from strop.training.split_batch import split
from strop.types import Metrics

LARGEST = 64_000_000  # weights that learn: each part under way has a gradient of its own
_LEAST = 512  # tokens of a part: below, its products are too small to be quick
Found = TypeVar("Found")
LossOf: TypeAlias = Callable[[Batch], tuple[Tensor, Metrics]]


class AtOnce:
    """Threads that each compute parts; unless `is_wanted`, the caller computes whole batches alone."""

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self._pool: ThreadPoolExecutor | None = None

    def parts(self, batch: Batch, scope: str) -> list[Batch]:
        """Itself where it is too short; with a scope of group, no group is in two of them."""
        count = min(torch.get_num_threads(), len(batch.tokens) // _LEAST) if self.is_wanted else 1
        return [batch] if count < 2 else [part.batch for part in split(batch, count, scope) if part.low < part.high]

    def on_tokens(self, batches: Sequence[Batch], work: Callable[[Batch], Tensor]) -> Iterator[Tensor]:
        """What `work` finds on the tokens of each batch: [T]."""
        parts = [self.parts(batch, "rollout") for batch in batches]
        found = self._over([part for each in parts for part in each], work)
        return (torch.cat([next(found) for _ in each]) for each in parts)

    def backward(
        self, parts: Sequence[Batch], loss_of: LossOf, learned: Sequence[Tensor]
    ) -> list[tuple[Tensor, Metrics]]:
        """Losses and metrics; gradients are added to those of `learned` in the order of parts, whoever was quick."""
        if len(parts) < 2 or not self.is_wanted:
            return [_backward(*loss_of(part)) for part in parts]

        def gradients(part: Batch) -> tuple[Tensor, Metrics, Sequence[Tensor | None]]:
            loss, metrics = loss_of(part)
            return loss.detach(), metrics, torch.autograd.grad(loss, learned, allow_unused=True)

        told = []
        for loss, metrics, pulls in self._over(parts, gradients):
            _add(learned, pulls)
            told.append((loss, metrics))
        return told

    def _over(self, parts: Sequence[Batch], work: Callable[[Batch], Found]) -> Iterator[Found]:
        """In their order."""
        threads = torch.get_num_threads()
        count = min(threads, len(parts))
        if count < 2 or not self.is_wanted:
            return map(work, parts)

        def with_few(part: Batch) -> Found:
            torch.set_num_threads(threads // count)  # each thread has its own count
            return work(part)

        self._pool = self._pool or ThreadPoolExecutor(threads, "parts")
        return self._pool.map(with_few, parts)


def _backward(loss: Tensor, metrics: Metrics) -> tuple[Tensor, Metrics]:
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), metrics


@torch.no_grad()
def _add(learned: Sequence[Tensor], pulls: Sequence[Tensor | None]) -> None:
    for parameter, pull in zip(learned, pulls, strict=True):
        if parameter.grad is None:
            parameter.grad = pull
        elif pull is not None:
            parameter.grad += pull
