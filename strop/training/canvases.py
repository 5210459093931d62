"""Completions as a model that fills masks wrote them: what stood before, tokens with the steps they came in, the
rest.
"""

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

NEVER = np.iinfo(np.int64).max  # the step of a place that stayed masked


@dataclass(frozen=True, eq=False)
class WrittenCanvas:
    """A completion of N tokens on a canvas of L places."""

    tokens: IntArray  # [L], what was read before, the completion, and what stood behind it
    order: IntArray  # [L], the step that each came in; 0: before the first
    start: int  # of the completion
    stop: int  # behind it
    key: int  # of its random numbers

    def probabilities(self, stream: int = 0) -> NDArray[np.float64]:
        """A random number in [0, 1) for each place: [L]; the same however a step is split."""
        count = len(self.tokens)
        return uniforms(np.full(count, as_key(self.key)), np.arange(count) + stream * (1 << 32))

    @property
    def is_completion(self) -> NDArray[np.bool_]:
        """[L]"""
        places = np.arange(len(self.tokens))
        return (places >= self.start) & (places < self.stop)


@dataclass(frozen=True, eq=False)
class Glance:
    """One forward pass over a canvas."""

    hidden: NDArray[np.bool_]  # [L], what is masked
    judged: NDArray[np.bool_]  # [L], tokens of the completion that are asked about, all of them hidden
    weight: float = 1.0  # of their logprobs


def canvases(batch: Batch, seed: int) -> Iterator[tuple[int, WrittenCanvas]]:
    """Every completion of a batch, with the place of its first token there."""
    tokens, written = batch.tokens.cpu().numpy(), batch.trainable.cpu().numpy()
    segments, rollouts, versions = (x.cpu().numpy() for x in (batch.segments, batch.rollouts, batch.versions))
    notes = batch.aux[ORDER].cpu().numpy().astype(np.int64) if ORDER in batch.aux else np.zeros((len(tokens), 3), int)
    changes = np.flatnonzero(np.diff(2 * segments + written)) + 1
    for first, stop in pairwise([0, *changes.tolist(), len(tokens)]):
        if written[first]:
            start = int(np.searchsorted(segments, segments[first]))  # of its context
            owner = batch.rollout_ids[rollouts[first]]
            _check(notes[first:stop], versions[first:stop], owner)
            name = f"{seed}/{batch.version}/{batch.view}/{owner}/{first - start}"
            yield first, _filled(tokens[start:stop], notes[start:stop], first - start, _key(name))


def _check(notes: IntArray, versions: IntArray, owner: str) -> None:
    """Whether all tokens of a completion filled one canvas, or a model wrote none of them; [N, 3] and [N].

    A part that is gone on with later stood in the same canvas: it had room for all that came behind it.
    """
    behind, parts = notes[:, 1], np.flatnonzero(np.diff(notes[:, 1])) + 1
    if (notes[:, 0] > 0).all():
        is_one = (behind[parts - 1] == len(notes) - parts + behind[-1]).all()
    else:
        is_one = not notes.any() and (versions < 0).all()
    if not is_one:
        raise ConfigurationError(
            f"the completion of rollout {owner} is not one canvas as a model filled it: something cut it, put it "
            f"together "
            "or took the notes of its order away, so that nobody can say beside what its tokens were drawn"
        )


def _filled(tokens: IntArray, notes: IntArray, start: int, key: int) -> WrittenCanvas:
    """With the places behind the completion: those of one that ended came with its last token."""
    behind, is_ended = int(notes[-1, 1]), bool(notes[-1, 2])
    order = notes[:, 0].copy()
    order[:start] = 0
    came = order[-1] if is_ended else NEVER
    return WrittenCanvas(
        np.append(tokens, np.full(behind, tokens[-1])), np.append(order, np.full(behind, came)), start, len(tokens), key
    )


def _key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
