"""Environments whose episodes depend on the weight version at which a rollout starts, inside wrappers too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.capabilities import Dated, inside
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Environment, Episode
from strop.types import Start


def episode_at(env: Environment, start: Start) -> Episode:
    """As it is for a rollout that begins so."""
    if issubclass(type(env), Dated) and isinstance(env, Dated):  # the first is remembered, and much quicker
        return env.at(start)
    if isinstance(env, Around) and inside(env.inner, Dated):
        return replace(env, inner=_From(env.inner, start)).episode()
    return env.episode()


@dataclass(frozen=True)
class _From(Around):
    """Environment in which every rollout starts at the same weight version."""

    start: Start

    def episode(self) -> Episode:
        return episode_at(self.inner, self.start)


def check_undated(env: Environment, holder: str) -> None:
    """Refuse an environment that changes where it is asked from afar, and would never hear of versions."""
    for dated in inside(env, Dated):
        raise ConfigurationError(
            f"{holder} asks its environment in another process, where nobody says which version of the weights a "
            f"rollout "
            f"began with, and {type(dated).__name__} depends on it: use it without {holder}"
        )
