"""Engine pair of the trained policy and a frozen reference model, selected by policy name.

Papers: aapo, rlgf
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from strop.backends import Completion, WeightVersion
from strop.generate.rollout_limits import REFERENCE
from strop.generate.turn_ops import NOBODY
from strop.roles import Engine
from strop.training.machine.tokenizers import check_same_words
from strop.types import FilePath, IntArray, Sampling


@dataclass
class WithReference(Engine):
    """Engine that sends requests in the reference's policy name to `reference`, all others to `inner`.

    The reference keeps its first weights. Tokens of a model from another folder belong to no weight version of this
    run.
    """

    inner: Engine
    reference: Engine
    folder: FilePath = ""  # of the reference's model; empty: the one that training begins with

    def open(self, model: Path) -> None:
        if self.folder:
            check_same_words(model, Path(self.folder))
        self.inner.open(model)
        self.reference.open(Path(self.folder) if self.folder else model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        if sampling.policy_name != REFERENCE:
            return await self.inner.sample(prompt, sampling, key)
        written = await self.reference.sample(prompt, sampling, key)
        return replace(written, versions=np.full_like(written.versions, NOBODY)) if self.folder else written

    async def load(self, version: WeightVersion) -> str:
        return await self.inner.load(version)

    def forget(self) -> None:
        self.inner.forget()
        self.reference.forget()

    def abort(self, key: int) -> None:
        self.inner.abort(key)
        self.reference.abort(key)
