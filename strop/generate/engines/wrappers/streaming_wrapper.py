"""A completion that somebody reads while it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from strop.backends import Completion
from strop.generate.engines.wrappers.chunk_sampling import InPieces, goes_on
from strop.generate.engines.wrappers.concat import joined
from strop.types import IntArray, Sampling

_TOKENS = 8  # of a piece: a few a second are told each on its own, and quick engines are not asked for each token


def unheard(tokens: IntArray) -> None:
    """Nobody listens."""


@dataclass
class Told(InPieces):
    """`inner`, asked for a few tokens at a time; `tell` gets them as they come. They are those of one request."""

    tell: Callable[[IntArray], None] = field(default=unheard, repr=False)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not goes_on(self.inner):
            whole = await self.inner.sample(prompt, sampling, key)
            self.hear(whole)
            return whole
        return joined(*await self.pieces(prompt, sampling, key, lambda at: replace(sampling, max_tokens=_TOKENS)))

    def hear(self, piece: Completion) -> None:
        self.tell(piece.tokens)
