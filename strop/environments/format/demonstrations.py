"""Environments that know right replies, asked for in one place."""

from __future__ import annotations

from strop.capabilities import Demonstrates
from strop.errors import ConfigurationError
from strop.roles import Environment


def demonstrating(environment: Environment) -> Demonstrates:
    """The environment as one that shows what to reply; one that cannot is refused."""
    if not isinstance(environment, Demonstrates):
        raise ConfigurationError(f"{type(environment).__name__} has no demonstrate(), so nothing can be shown in it")
    return environment
