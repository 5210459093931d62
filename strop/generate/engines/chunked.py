"""Chunked attempts, as in MiniCPM4's chunk-wise rollout (2506.07900): a reply is written a piece at a time.

After each piece the request goes to the back of the queue, or to another engine where several stand behind this one,
so that one long reply never holds a place for its whole length. The random numbers of a token depend on its position
and the attempt's key alone, so the pieces are what one request would have written under the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.engines.joined import joined
from strop.machines import Completion, Engine, Stop, WeightVersion
from strop.types import IntArray, Sampling


@dataclass
class Chunked(Engine):
    """Asks `inner` for at most `tokens` tokens at a time."""

    inner: Engine
    tokens: int = 64
    _aborted: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigurationError(f"Chunked needs tokens >= 1, got {self.tokens}")

    def open(self, model: Path) -> None:
        self.inner.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Piece after piece, each going on where the last one ended."""
        self._aborted.discard(key)
        pieces: list[Completion] = []
        left, is_whole = sampling.max_tokens, False
        while not is_whole and key not in self._aborted:
            size = min(self.tokens, left)
            piece = await self.inner.sample(prompt, replace(sampling, max_tokens=size), key)
            pieces.append(piece)
            prompt = np.concatenate([prompt, piece.tokens])
            left -= len(piece.tokens)
            if sampling.stop:  # which may span the cut
                sampling = replace(sampling, begun=sampling.begun + len(piece.tokens))
            # a piece shorter than asked for met the end of the context
            is_whole = piece.stop is not Stop.LENGTH or left == 0 or len(piece.tokens) < size
        return joined(pieces, pieces[-1].stop if is_whole else Stop.ABORTED)

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()

    def abort(self, key: int) -> None:
        self._aborted.add(key)
        self.inner.abort(key)
