"""Whose weights speak in a voice, where several models learn at once."""

from __future__ import annotations

from collections.abc import Sequence

from strop.errors import ConfigurationError


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
