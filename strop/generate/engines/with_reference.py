"""Two engines as one: the policy that learns, and the model it began as, which answers the requests marked for it.

Papers: aapo
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from strop.generate.marked_keys import read_mark
from strop.roles import Engine
from strop.types import Completion, IntArray, Sampling, WeightVersion


@dataclass
class WithReference(Engine):
    """Requests with a marked key go to `reference`, which keeps the weights it opened with; all others to `inner`."""

    inner: Engine
    reference: Engine

    def open(self, model: Path) -> None:
        self.inner.open(model)
        self.reference.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        plain, way = read_mark(key, 1)
        engine = self.inner if way is None else self.reference
        return await engine.sample(prompt, sampling, plain)

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()
        self.reference.forget()

    def abort(self, key: int) -> None:
        plain, way = read_mark(key, 1)
        (self.inner if way is None else self.reference).abort(plain)
