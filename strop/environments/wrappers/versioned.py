"""The environment of an attempt, where the world changes while the policy learns: seen through worlds around it too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.capabilities import Dated, inside
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.roles import Environment, World
from strop.types import Start


def environment_at(world: World, start: Start) -> Environment:
    """As it is for an attempt that begins so."""
    if issubclass(type(world), Dated) and isinstance(world, Dated):  # the first is remembered, and much quicker
        return world.at(start)
    if isinstance(world, Around) and inside(world.inner, Dated):
        return replace(world, inner=_From(world.inner, start)).environment()
    return world.environment()


@dataclass(frozen=True)
class _From(Around):
    """A world in which every attempt begins alike."""

    start: Start

    def environment(self) -> Environment:
        return environment_at(self.inner, self.start)


def check_undated(world: World, holder: str) -> None:
    """Refuse a world that changes where it is asked from afar, and would never hear of versions."""
    for dated in inside(world, Dated):
        raise ConfigurationError(
            f"{holder} asks its world in another process, where nobody says which version of the weights an attempt "
            f"began with, and {type(dated).__name__} depends on it: use it without {holder}"
        )
