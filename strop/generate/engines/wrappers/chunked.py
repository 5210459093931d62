"""Chunked rollouts, as in MiniCPM4's chunk-wise rollout (2506.07900): a completion is written a piece at a time.

After each piece the request goes to the back of the queue, or to another engine where several stand behind this one,
so that one long completion never holds a place for its whole length. The random numbers of a token depend on its
position and the rollout's key alone, so the pieces are what one request would have written under the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.backends import Completion
from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.chunk_sampling import InPieces
from strop.generate.engines.wrappers.concat import joined
from strop.types import IntArray, Sampling


@dataclass
class Chunked(InPieces):
    """Asks `inner` for at most `tokens` tokens at a time."""

    tokens: int = 64

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigurationError(f"Chunked needs tokens >= 1, got {self.tokens}")

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return joined(*await self.pieces(prompt, sampling, key, lambda at: replace(sampling, max_tokens=self.tokens)))
