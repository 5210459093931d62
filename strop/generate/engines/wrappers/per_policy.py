"""Engine with separate weights per policy name, for several models that are trained at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from strop.backends import Completion, WeightVersion
from strop.capabilities import Borrows, Refuses
from strop.errors import DeliveryError
from strop.roles import Engine
from strop.types import IntArray, Sampling
from strop.weights.channels.memory import Memory
from strop.weights.fingerprint import fingerprint
from strop.weights.per_policy import SharedByPolicy, check_policies, part_of, place_of
from strop.weights.shared_base_weights import Loan

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class EnginePerPolicy(Engine, Refuses):
    """Router of requests to the engine of their policy name; the first policy name is the default.

    Weights arrive with the policy name as prefix (`POLICY/`), from `TrainerPerPolicy`. Every engine starts with the
    run's model; with LoRA adapters they may share one copy of the base model.
    """

    policy_names: tuple[str, ...]
    engines: tuple[Engine, ...]  # one for each

    _shared: SharedByPolicy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_policies(self.policy_names, len(self.engines), "engines")

    def problems(self, run: Run) -> list[str]:
        is_near = isinstance(run.channel, Memory)
        return [] if is_near else ["EnginePerPolicy takes weights by name within one process: use channel=Memory()"]

    def borrow(self, shared: Loan | None) -> bool:
        """All engines read what is shared to their policy names, or none does."""
        found = shared if isinstance(shared, SharedByPolicy) else SharedByPolicy({})
        pairs = zip(self.policy_names, self.engines, strict=True)
        fits = [
            isinstance(engine, Borrows) and engine.borrow(found.parts.get(policy_name)) for policy_name, engine in pairs
        ]
        if not all(fits):
            for engine in self.engines:
                if isinstance(engine, Borrows):
                    engine.borrow(None)
        self._shared = found if all(fits) else None
        return self._shared is not None

    def open(self, model: Path) -> None:
        for engine in self.engines:
            engine.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return await self.engines[place_of(sampling.policy_name, self.policy_names)].sample(prompt, sampling, key)

    async def load(self, version: WeightVersion) -> str:
        """Each engine proves that it holds its own part; all parts together are the version."""
        parts, shared = [part_of(version.location, policy_name) for policy_name in self.policy_names], self._shared
        pairs = zip(self.policy_names, parts, strict=True)
        names = [
            fingerprint(part) if shared is None else shared.parts[policy_name].published(part)
            for policy_name, part in pairs
        ]
        asked = [WeightVersion(version.step, name, part) for name, part in zip(names, parts, strict=True)]
        told = await asyncio.gather(*(engine.load(part) for engine, part in zip(self.engines, asked, strict=True)))
        for policy_name, name, answer in zip(self.policy_names, names, told, strict=True):
            if answer != name:
                raise DeliveryError(
                    f"the engine of policy name {policy_name!r} holds {answer} after step {version.step}, not {name}"
                )
        return fingerprint(version.location) if shared is None else shared.published(version.location)

    def forget(self) -> None:
        for engine in self.engines:
            engine.forget()

    def abort(self, key: int) -> None:
        for engine in self.engines:
            engine.abort(key)
