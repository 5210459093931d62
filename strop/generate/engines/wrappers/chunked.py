"""Engine wrappers that sample a completion in chunks and join or stream them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from strop.backends import EXPERTS, Completion, Stop, WeightVersion
from strop.capabilities import inside
from strop.errors import ConfigurationError
from strop.roles import Engine
from strop.types import IntArray, Sampling

# Engines that ask another one for a completion piece by piece.


def goes_on(engine: Engine) -> bool:
    """Whether a completion asked for in pieces is the completion that one request gets, of an engine and all it is made
    of.
    """
    return all(part.goes_on for part in inside(engine, Engine))


@dataclass
class InPieces(Engine):
    """Engine wrapper that calls `inner` repeatedly; subclasses choose the calls and join the results."""

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


# One completion from pieces written one after the other, perhaps by different engines.


def joined(pieces: Sequence[Completion], stop: Stop) -> Completion:
    """Each token keeps its own logprob and version, and of `aux` what all pieces that wrote something know.

    What is noted of a whole context stands in the last piece.
    """
    telling = [piece.aux for piece in pieces if len(piece.tokens)] or [piece.aux for piece in pieces]
    names = [name for name in telling[0] if all(name in aux for aux in telling)]
    return Completion(
        np.concatenate([piece.tokens for piece in pieces]),
        np.concatenate([piece.logprobs for piece in pieces]),
        np.concatenate([piece.versions for piece in pieces]),
        stop,
        {n: telling[-1][n] if n == EXPERTS else np.concatenate([aux[n] for aux in telling]) for n in names},
    )


# Chunked rollouts, as in MiniCPM4's chunk-wise rollout (2506.07900): a completion is written a piece at a time.
#
# After each piece the request goes to the back of the queue, or to another engine where several stand behind this one,
# so that one long completion never holds a place for its whole length. The random numbers of a token depend on its
# position and the rollout's key alone, so the pieces are what one request would have written under the same weights.


@dataclass
class Chunked(InPieces):
    """Engine wrapper with at most `tokens` tokens per call of `inner`."""

    tokens: int = 64

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigurationError(f"Chunked needs tokens >= 1, got {self.tokens}")

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return joined(*await self.pieces(prompt, sampling, key, lambda at: replace(sampling, max_tokens=self.tokens)))


# A completion that somebody reads while it is written.

_TOKENS = 8  # of a piece: a few a second are told each on its own, and quick engines are not asked for each token


def unheard(tokens: IntArray) -> None:
    """Nobody listens."""


@dataclass
class Told(InPieces):
    """Streaming wrapper for one request: `tell` gets each few tokens as they come."""

    tell: Callable[[IntArray], None] = field(default=unheard, repr=False)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not goes_on(self.inner):
            whole = await self.inner.sample(prompt, sampling, key)
            self.hear(whole)
            return whole
        return joined(*await self.pieces(prompt, sampling, key, lambda at: replace(sampling, max_tokens=_TOKENS)))

    def hear(self, piece: Completion) -> None:
        self.tell(piece.tokens)
