"""Whose weights speak in a voice, where several models learn at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from strop.errors import ConfigurationError
from strop.weights.shared_base_weights import Lent, Loan


def check_voices(voices: Sequence[str], count: int, what: str) -> None:
    """Refuse names that two parts would share, or that are no names of folders."""
    is_named = all(voice and voice.replace("_", "").replace(" ", "").isalnum() for voice in voices)
    if not voices or len(set(voices)) != len(voices) or len(voices) != count or not is_named:
        raise ConfigurationError(
            f"need different voices of letters, digits, blanks and _, one for each of the {what}, got {list(voices)} "
            f"for {count} {what}"
        )


def place_of(voice: str, voices: Sequence[str]) -> int:
    """The voice's own weights; whoever has none speaks with the first."""
    return voices.index(voice) if voice in voices else 0


def part_of(weights: Mapping[str, Tensor], voice: str) -> dict[str, Tensor]:
    """What was published under the prefix of a voice (`VOICE/`), without it."""
    prefix = f"{voice}/"
    part = {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
    if not part:
        raise ConfigurationError(f"no weights were published for voice {voice!r}: use trainer=TrainerPerVoice(...)")
    return part


def together(parts: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """All parts under the prefixes of their voices."""
    return {f"{voice}/{name}": each for voice, part in parts.items() for name, each in part.items()}


@dataclass(frozen=True, eq=False)
class LentByVoice(Loan):
    """The same weights lent to each voice, with adapters of its own beside them."""

    parts: Mapping[str, Lent]

    @property
    def adapters(self) -> dict[str, Tensor]:
        return together({voice: lent.adapters for voice, lent in self.parts.items()})

    def published(self, adapters: Mapping[str, Tensor]) -> str:
        names = [lent.published(part_of(adapters, voice)) for voice, lent in self.parts.items()]
        return hashlib.sha256("|".join(names).encode()).hexdigest()[:32]
