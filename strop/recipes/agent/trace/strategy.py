"""In some worlds another voice speaks than the policy's own: one adapter for each synthetic world (TRACE, 2604.05336).

Whose weights a voice has, `EnginePerVoice` and `TrainerPerVoice` say.
Papers: trace
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class VoicePerWorld(Strategy):
    """What `inner` does, begun in the voice of the task's world."""

    inner: Strategy
    voices: tuple[tuple[str, str], ...]  # the name of a world, and who speaks there; elsewhere the policy does

    def __post_init__(self) -> None:
        if not self.voices or not all(world and voice for world, voice in self.voices):
            raise ConfigurationError(f"VoicePerWorld needs pairs of a world's name and a voice, got {self.voices}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        voice = dict(self.voices).get(group.task.source, "")
        return await self.inner(group, [replace(start, voice=voice or start.voice) for start in starts], play)
