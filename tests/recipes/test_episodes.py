"""Environments by name (strop.recipes.environments): found without importing what other environments need."""

from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked, Earned
from strop.recipes.environment_specs import measured
from strop.recipes.environments import bundled_envs, parse_envs


def test_envs_with_levels() -> None:
    assert {"arithmetic", "compose", "countdown"} <= set(bundled_envs())
    found = parse_envs("arithmetic:3+countdown:4", seed=1)
    assert [(env.name, env.level) for env in found] == [("arithmetic", 3), ("countdown", 4)]


def test_what_is_only_measured_weighs_nothing() -> None:
    sums, algorithms = parse_envs("arithmetic:3"), parse_envs("reasoning_gym/gcd")
    assert measured(sums) == Earned(weight=0.0) and measured((*sums, *algorithms)).weight == 0.0
    assert isinstance(measured((*sums, *algorithms)), Checked), "what pays nothing by itself is asked"


@pytest.mark.parametrize("text", ["arithmetik:3", "scratchpad", "single_turn:2"])
def test_what_is_no_env_is_refused(text: str) -> None:
    """A module of the room is not yet an environment."""
    with pytest.raises(ConfigurationError, match="there is no environment"):
        parse_envs(text)
