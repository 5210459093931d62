"""Check that an episode can demonstrate right completions."""

from __future__ import annotations

from strop.capabilities import Demonstrates
from strop.errors import ConfigurationError
from strop.roles import Episode


def demonstrating(episode: Episode) -> Demonstrates:
    """The episode, if it can demonstrate right completions; refused otherwise."""
    if not isinstance(episode, Demonstrates):
        raise ConfigurationError(f"{type(episode).__name__} has no demonstrate(), so nothing can be shown in it")
    return episode
