"""Only what was said in certain voices is trained on; what the others said was a look at how things stand (TRACE).

Papers: trace
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.roles import Gate
from strop.types import Group, Verdict


@dataclass(frozen=True)
class SpokenBy(Gate):
    """Attempts in which one of these voices spoke; a group without any is dropped on purpose."""

    voices: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.voices or "" in self.voices:
            raise ConfigurationError(f"SpokenBy needs at least 1 voice, each with a name, got {list(self.voices)}")

    def __call__(self, group: Group) -> Verdict:
        kept = [a for a in group.scored if any(turn.sampling.voice in self.voices for turn in a.turns)]
        if not kept:
            return Verdict(None, "none of its attempts was made to be trained on", is_meant=True)
        return Verdict(replace(group, trajectories=kept))
