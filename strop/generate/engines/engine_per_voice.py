"""Several models that learn at once: requests in a voice go to the engine that holds this voice's weights."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from strop.abilities import Refuses
from strop.errors import ConfigurationError, DeliveryError
from strop.machines import Completion, Engine, WeightVersion
from strop.types import IntArray, Sampling
from strop.weights.by_voice import check_voices, place_of
from strop.weights.channels.memory import Memory
from strop.weights.fingerprint import fingerprint

if TYPE_CHECKING:
    from strop.run import Run


@dataclass
class EnginePerVoice(Engine, Refuses):
    """Weights come under the prefix of a voice (`VOICE/`), from `TrainerPerVoice`; the first voice is everybody else's.

    Every engine begins with the run's model and keeps a copy of all of it, adapters or not.
    """

    voices: tuple[str, ...]
    engines: tuple[Engine, ...]  # one for each

    def __post_init__(self) -> None:
        check_voices(self.voices, len(self.engines), "engines")

    def problems(self, run: Run) -> list[str]:
        is_near = isinstance(run.channel, Memory)
        return [] if is_near else ["EnginePerVoice takes weights by name within one process: use channel=Memory()"]

    def open(self, model: Path) -> None:
        for engine in self.engines:
            engine.open(model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        return await self.engines[place_of(sampling.voice, self.voices)].sample(prompt, sampling, key)

    async def load(self, version: WeightVersion) -> str:
        """Each engine proves that it holds its own part; all parts together are the version."""
        parts = [_part(version.location, voice) for voice in self.voices]
        names = [fingerprint(part) for part in parts]
        asked = [WeightVersion(version.step, name, part) for name, part in zip(names, parts, strict=True)]
        told = await asyncio.gather(*(engine.load(part) for engine, part in zip(self.engines, asked, strict=True)))
        for voice, name, answer in zip(self.voices, names, told, strict=True):
            if answer != name:
                raise DeliveryError(
                    f"the engine of voice {voice!r} holds {answer} after step {version.step}, not {name}"
                )
        return fingerprint(version.location)

    def forget(self) -> None:
        for engine in self.engines:
            engine.forget()

    def abort(self, key: int) -> None:
        for engine in self.engines:
            engine.abort(key)


def _part(location: Any, voice: str) -> Mapping[str, Tensor]:
    prefix = f"{voice}/"
    part = {name.removeprefix(prefix): each for name, each in location.items() if name.startswith(prefix)}
    if not part:
        raise ConfigurationError(f"no weights were published for voice {voice!r}: use trainer=TrainerPerVoice(...)")
    return part
