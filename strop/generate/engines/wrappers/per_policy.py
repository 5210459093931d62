"""Several models that learn at once: requests in a voice go to the engine that holds this voice's weights."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from strop.backends import Completion, Engine, WeightVersion
from strop.capabilities import Borrows, Refuses
from strop.errors import DeliveryError
from strop.types import IntArray, Sampling
from strop.weights.channels.memory import Memory
from strop.weights.fingerprint import fingerprint
from strop.weights.per_policy import LentByVoice, check_voices, part_of, place_of
from strop.weights.shared_base_weights import Loan

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class EnginePerVoice(Engine, Refuses):
    """Weights come under the prefix of a voice (`VOICE/`), from `TrainerPerVoice`; the first voice is everybody else's.

    Every engine begins with the run's model; where only adapters learn, all of them may read one copy of it.
    """

    voices: tuple[str, ...]
    engines: tuple[Engine, ...]  # one for each

    _lent: LentByVoice | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_voices(self.voices, len(self.engines), "engines")

    def problems(self, run: Run) -> list[str]:
        is_near = isinstance(run.channel, Memory)
        return [] if is_near else ["EnginePerVoice takes weights by name within one process: use channel=Memory()"]

    def borrow(self, lent: Loan | None) -> bool:
        """All engines read what is lent to their voices, or none does."""
        found = lent if isinstance(lent, LentByVoice) else LentByVoice({})
        pairs = zip(self.voices, self.engines, strict=True)
        fits = [isinstance(engine, Borrows) and engine.borrow(found.parts.get(voice)) for voice, engine in pairs]
        if not all(fits):
            for engine in self.engines:
                if isinstance(engine, Borrows):
                    engine.borrow(None)
        self._lent = found if all(fits) else None
        return self._lent is not None

    def open(self, model: Path) -> None:
        for engine in self.engines:
            engine.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return await self.engines[place_of(sampling.voice, self.voices)].sample(prompt, sampling, key)

    async def load(self, version: WeightVersion) -> str:
        """Each engine proves that it holds its own part; all parts together are the version."""
        parts, lent = [part_of(version.location, voice) for voice in self.voices], self._lent
        pairs = zip(self.voices, parts, strict=True)
        names = [fingerprint(part) if lent is None else lent.parts[voice].published(part) for voice, part in pairs]
        asked = [WeightVersion(version.step, name, part) for name, part in zip(names, parts, strict=True)]
        told = await asyncio.gather(*(engine.load(part) for engine, part in zip(self.engines, asked, strict=True)))
        for voice, name, answer in zip(self.voices, names, told, strict=True):
            if answer != name:
                raise DeliveryError(
                    f"the engine of voice {voice!r} holds {answer} after step {version.step}, not {name}"
                )
        return fingerprint(version.location) if lent is None else lent.published(version.location)

    def forget(self) -> None:
        for engine in self.engines:
            engine.forget()

    def abort(self, key: int) -> None:
        for engine in self.engines:
            engine.abort(key)
