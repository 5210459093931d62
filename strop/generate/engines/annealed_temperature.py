"""EAD's engine (2510.05251): within a reply the temperature falls from hot to cold, later the longer training lasts.

Reading: a temperature holds for a few tokens and not for one; logprobs are of what was really sampled from. Replies are
counted from where they were asked for: one that is taken up in its middle begins hot again.
Papers: ead
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from strop.errors import ConfigurationError
from strop.generate.engines.joined import joined
from strop.generate.voices import ANNEALED
from strop.machines import Completion, Engine, Stop, WeightVersion
from strop.types import IntArray, Sampling

TEMPERATURE = "temperature"  # in `Turn.aux`: of each sampled token


@dataclass
class AnnealedTemperature(Engine):
    """Token t of a reply in the annealed voice is drawn at max(1 + hottest - exp(t / scale), coldest).

    The first `plain` tokens are drawn at 1. scale = first + growth * version: 1 is crossed at t = scale * log(hottest).
    All is multiplied by the temperature asked for. Plain requests are passed on.
    """

    inner: Engine
    hottest: float = 1.2
    coldest: float = 0.1
    plain: int = 10  # tokens of a reply before the heat begins
    first: float = 500.0  # scale of the fall, in tokens, at version 0
    growth: float = 100.0  # of the scale with each version
    size: int = 4  # tokens that are drawn at one temperature
    is_late: bool = False  # heat rises by the same rule from coldest to hottest: for comparison

    _aborted: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

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

    def open(self, model: Path) -> None:
        self.inner.open(model)

    def temperature(self, at: int, version: int) -> float:
        """Of token number `at` of a reply."""
        if at < self.plain:
            return 1.0
        scale = self.first + self.growth * version
        # beyond the coldest the exponential would only overflow
        risen = math.exp(min(at / scale, math.log(1 + self.hottest)))
        falling = max(1 + self.hottest - risen, self.coldest)
        return self.hottest + self.coldest - falling if self.is_late else falling

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Piece after piece, each going on where the last one ended."""
        if not sampling.voice.startswith(ANNEALED):
            return await self.inner.sample(prompt, sampling, key)
        self._aborted.discard(key)
        version = int(sampling.voice.removeprefix(ANNEALED))
        asked = replace(sampling, voice="")
        pieces: list[Completion] = []
        at, is_whole = 0, False
        while not is_whole and key not in self._aborted:
            size = min(self.size if at >= self.plain else self.plain - at, sampling.max_tokens - at)
            heat = self.temperature(at, version)
            changed = replace(asked, max_tokens=size, temperature=sampling.temperature * heat)
            if sampling.stop:  # a text that ends the reply may begin in the piece before
                changed = replace(changed, begun=sampling.begun + at)
            piece = await self.inner.sample(prompt, changed, key)
            aux = {**piece.aux, TEMPERATURE: np.full(len(piece.tokens), heat, np.float32)}
            pieces.append(replace(piece, aux=aux))
            prompt, at = np.concatenate([prompt, piece.tokens]), at + len(piece.tokens)
            # a piece shorter than asked for met the end of the context
            is_whole = piece.stop is not Stop.LENGTH or at >= sampling.max_tokens or len(piece.tokens) < size
        return joined(pieces, pieces[-1].stop if is_whole else Stop.ABORTED)

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()

    def abort(self, key: int) -> None:
        self._aborted.add(key)
        self.inner.abort(key)
