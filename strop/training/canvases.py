"""Completions of a masked diffusion model as canvases: prompt, tokens with their unmasking steps, and padding."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from strop.backends import ORDER
from strop.errors import ConfigurationError
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.training.batch import Batch
from strop.types import IntArray

NEVER = np.iinfo(np.int64).max  # the step of a position that stayed masked


@dataclass(frozen=True, eq=False)
class WrittenCanvas:
    """Completion of N tokens on a canvas of L positions."""

    tokens: IntArray  # [L]: prompt, completion, and what followed it
    order: IntArray  # [L], the step in which each was unmasked; 0: before the first
    start: int  # of the completion
    stop: int  # end of the completion
    key: int  # of its random numbers

    def probabilities(self, stream: int = 0) -> NDArray[np.float64]:
        """A uniform random number in [0, 1) for each position: [L]; independent of how a step is split."""
        count = len(self.tokens)
        return uniforms(np.full(count, as_key(self.key)), np.arange(count) + stream * (1 << 32))

    @property
    def is_completion(self) -> NDArray[np.bool_]:
        """[L]"""
        places = np.arange(len(self.tokens))
        return (places >= self.start) & (places < self.stop)


@dataclass(frozen=True, eq=False)
class Glance:
    """One forward pass over a partly masked canvas."""

    hidden: NDArray[np.bool_]  # [L], the masked positions
    judged: NDArray[np.bool_]  # [L], completion tokens whose logprobs are read, all of them masked
    weight: float = 1.0  # of their logprobs


def canvases(batch: Batch, seed: int) -> Iterator[tuple[int, WrittenCanvas]]:
    """Every completion of a batch, with the index of its first token."""
    tokens, written = batch.tokens.cpu().numpy(), batch.trainable.cpu().numpy()
    segments, rollouts, versions = (x.cpu().numpy() for x in (batch.segments, batch.rollouts, batch.versions))
    order_rows = (
        batch.aux[ORDER].cpu().numpy().astype(np.int64) if ORDER in batch.aux else np.zeros((len(tokens), 3), int)
    )
    changes = np.flatnonzero(np.diff(2 * segments + written)) + 1
    for first, stop in pairwise([0, *changes.tolist(), len(tokens)]):
        if written[first]:
            start = int(np.searchsorted(segments, segments[first]))  # of its context
            owner = batch.rollout_ids[rollouts[first]]
            _check(order_rows[first:stop], versions[first:stop], owner)
            name = f"{seed}/{batch.version}/{batch.view}/{owner}/{first - start}"
            yield first, _filled(tokens[start:stop], order_rows[start:stop], first - start, _key(name))


def _check(order_rows: IntArray, versions: IntArray, owner: str) -> None:
    """Refuse a completion whose tokens do not all come from one canvas, unless no model sampled it; [N, 3] and [N].

    A completion that was resumed later stood in the same canvas, which had room for all that followed.
    """
    behind, parts = order_rows[:, 1], np.flatnonzero(np.diff(order_rows[:, 1])) + 1
    if (order_rows[:, 0] > 0).all():
        is_one = (behind[parts - 1] == len(order_rows) - parts + behind[-1]).all()
    else:
        is_one = not order_rows.any() and (versions < 0).all()
    if not is_one:
        raise ConfigurationError(
            f"the completion of rollout {owner} does not come from one canvas: it was cut, concatenated, or lost its "
            "unmasking order, so its logprobs cannot be recomputed"
        )


def _filled(tokens: IntArray, order_rows: IntArray, start: int, key: int) -> WrittenCanvas:
    """The canvas with the positions after the completion; after an end-of-text token they count as unmasked with it."""
    behind, is_ended = int(order_rows[-1, 1]), bool(order_rows[-1, 2])
    order = order_rows[:, 0].copy()
    order[:start] = 0
    came = order[-1] if is_ended else NEVER
    return WrittenCanvas(
        np.append(tokens, np.full(behind, tokens[-1])), np.append(order, np.full(behind, came)), start, len(tokens), key
    )


def _key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
