"""Episodes that know right completions, asked for in one place."""

from __future__ import annotations

from strop.capabilities import Demonstrates
from strop.errors import ConfigurationError
from strop.roles import Episode


def demonstrating(episode: Episode) -> Demonstrates:
    """The episode as one that shows what to completion; one that cannot is refused."""
    if not isinstance(episode, Demonstrates):
        raise ConfigurationError(f"{type(episode).__name__} has no demonstrate(), so nothing can be shown in it")
    return episode
