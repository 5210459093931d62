"""Two engines as one: the policy that learns, and the model it began as, which answers the requests in its voice.

Papers: aapo
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strop.generate.voices import REFERENCE
from strop.machines import Completion, Engine, WeightVersion
from strop.types import IntArray, Sampling


@dataclass
class WithReference(Engine):
    """Requests in the reference's voice go to `reference`, which keeps its first weights; all others to `inner`."""

    inner: Engine
    reference: Engine

    def open(self, model: Path) -> None:
        self.inner.open(model)
        self.reference.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        engine = self.reference if sampling.voice == REFERENCE else self.inner
        return await engine.sample(prompt, sampling, key)

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()
        self.reference.forget()

    def abort(self, key: int) -> None:
        self.inner.abort(key)
        self.reference.abort(key)
