"""Engine wrapper with a temperature that falls within a completion, more slowly as training goes on (EAD, 2510.05251).

Reading: a temperature holds for a few tokens and not for one; logprobs are of what was really sampled from. Completions
are counted from where they were asked for: one that is taken up in its middle begins hot again.
Papers: ead
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strop.backends import Completion
from strop.errors import ConfigurationError
from strop.generate.engines.wrappers.chunked import InPieces, joined
from strop.generate.rollout_limits import ANNEALED
from strop.types import IntArray, Sampling

TEMPERATURE = "temperature"  # in `Turn.aux`: of each sampled token


@dataclass
class AnnealedTemperature(InPieces):
    """Temperature max(1 + hottest - exp(t / scale), coldest) for token t of completions under the annealed policy name.

    The first `plain` tokens are sampled at 1. scale = first + growth * version: 1 is crossed at t = scale *
    log(hottest). All is multiplied by the requested temperature. Other requests are passed on unchanged.
    """

    hottest: float = 1.2
    coldest: float = 0.1
    plain: int = 10  # tokens of a completion before the heat begins
    first: float = 500.0  # scale of the fall, in tokens, at version 0
    growth: float = 100.0  # of the scale with each version
    size: int = 4  # tokens that are drawn at one temperature
    is_late: bool = False  # heat rises by the same rule from coldest to hottest: for comparison

    def __post_init__(self) -> None:
        if not 0 < self.coldest <= 1 <= self.hottest:
            raise ConfigurationError(
                f"AnnealedTemperature needs 0 < coldest <= 1 <= hottest, got {self.coldest} and {self.hottest}"
            )
        if self.first <= 0 or self.growth < 0 or self.size < 1 or self.plain < 0:
            raise ConfigurationError(
                "AnnealedTemperature needs first > 0, growth >= 0, size >= 1 and plain >= 0, got "
                f"{self.first}, {self.growth}, {self.size} and {self.plain}"
            )

    def temperature(self, at: int, version: int) -> float:
        """Of token number `at` of a completion."""
        if at < self.plain:
            return 1.0
        scale = self.first + self.growth * version
        # beyond the coldest the exponential would only overflow
        risen = math.exp(min(at / scale, math.log(1 + self.hottest)))
        falling = max(1 + self.hottest - risen, self.coldest)
        return self.hottest + self.coldest - falling if self.is_late else falling

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not sampling.policy_name.startswith(ANNEALED):
            return await self.inner.sample(prompt, sampling, key)
        version = int(sampling.policy_name.removeprefix(ANNEALED))

        def ask(at: int) -> Sampling:
            size, heat = self.size if at >= self.plain else self.plain - at, self.temperature(at, version)
            return replace(sampling, policy_name="", max_tokens=size, temperature=sampling.temperature * heat)

        pieces, stop = await self.pieces(prompt, sampling, key, ask)
        return joined(list(self._told(pieces, version)), stop)

    def _told(self, pieces: Sequence[Completion], version: int) -> Iterator[Completion]:
        """Pieces with the temperature of each token."""
        at = 0
        for piece in pieces:
            heats = np.full(len(piece.tokens), self.temperature(at, version), np.float32)
            yield replace(piece, aux={**piece.aux, TEMPERATURE: heats})
            at += len(piece.tokens)
