"""Engine wrapper with noisy prompts (NoisyGRPO, 2510.21122): some requests read a prompt with exchanged tokens.

The rollout keeps the clean prompt, and training scores it there. Reading: the paper adds noise to images; here tokens
are replaced by other tokens of the same prompt, which needs no knowledge of the vocabulary.

Papers: noisygrpo
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strop.backends import Completion, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.rollout_limits import NOISE
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.roles import Engine
from strop.types import IntArray, Sampling


@dataclass
class Noisy(Engine):
    """Noise by policy name: in a request of noise level w, a share `strength * levels[w]` of the prompt's tokens is
    exchanged.
    """

    inner: Engine
    levels: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)  # of noise, by way
    strength: float = 0.5  # share of tokens exchanged at level 1
    spared: int = 2  # tokens at the end, which open the completion

    def __post_init__(self) -> None:
        if not self.levels or self.levels[0] != 0 or not all(0 <= level <= 1 for level in self.levels):
            raise ConfigurationError(f"Noisy needs levels from 0 to 1 of which the first is 0, got {self.levels}")

    def open(self, model: Path) -> None:
        self.inner.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if not sampling.policy_name.startswith(NOISE):
            return await self.inner.sample(prompt, sampling, key)
        level = self.levels[int(sampling.policy_name.removeprefix(NOISE))]
        return await self.inner.sample(self.disturbed(prompt, key, level), sampling, key)

    def disturbed(self, prompt: IntArray, key: int, level: float) -> IntArray:
        """The same for a key every time, so that a prompt that grew is disturbed as it was."""
        count = max(len(prompt) - self.spared, 0)
        places = np.arange(count)
        keys = np.full(count, as_key(key))
        is_hit = uniforms(keys, 2 * places + (1 << 40)) < self.strength * level
        # among the tokens before it, so that what follows later changes nothing
        others = (uniforms(keys, 2 * places + (1 << 40) + 1) * (places + 1)).astype(np.int64)
        read = prompt.copy()
        read[:count] = np.where(is_hit, prompt[others], prompt[:count])
        return read

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()

    def abort(self, key: int) -> None:
        self.inner.abort(key)
