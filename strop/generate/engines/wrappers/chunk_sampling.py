"""Engines that ask another one for a completion piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from strop.backends import Completion, Engine, Stop, WeightVersion
from strop.capabilities import inside
from strop.types import IntArray, Sampling


def goes_on(engine: Engine) -> bool:
    """Whether a completion asked for in pieces is the completion that one request gets, of an engine and all it is made
    of.
    """
    return all(part.goes_on for part in inside(engine, Engine))


@dataclass
class InPieces(Engine):
    """`inner`, asked again and again; a subclass says for what, and joins the pieces."""

    inner: Engine
    _aborted: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def open(self, model: Path) -> None:
        self.inner.open(model)

    async def pieces(
        self, prompt: IntArray, sampling: Sampling, key: int, ask: Callable[[int], Sampling]
    ) -> tuple[list[Completion], Stop]:
        """Piece after piece, each going on where the last one ended, and how the completion ended.

        `ask` says how the piece is drawn that begins at a token of the completion, and how long it may be.
        """
        self._aborted.discard(key)
        made: list[Completion] = []
        at, is_whole = 0, False
        while not is_whole and key not in self._aborted:
            asked = ask(at)
            size = min(asked.max_tokens, sampling.max_tokens - at)
            # a text that ends the completion may begin in the piece before
            begun = sampling.num_prefix + at if sampling.stop else sampling.num_prefix
            piece = await self.inner.sample(prompt, replace(asked, max_tokens=size, num_prefix=begun), key)
            made.append(piece)
            self.hear(piece)
            prompt, at = np.concatenate([prompt, piece.tokens]), at + len(piece.tokens)
            # a piece shorter than asked for met the end of the context
            is_whole = piece.stop is not Stop.LENGTH or at >= sampling.max_tokens or len(piece.tokens) < size
        return made, made[-1].stop if is_whole else Stop.ABORTED

    def hear(self, piece: Completion) -> None:
        """For whoever wants to know before the completion is whole."""

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()

    def abort(self, key: int) -> None:
        self._aborted.add(key)
        self.inner.abort(key)
