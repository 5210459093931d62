"""Worlds by name (strop.recipes.environments): found without importing what other worlds need."""

from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.env_check import Checked
from strop.filter.rewards.env_reward import Earned
from strop.recipes.environment_metric import measured
from strop.recipes.environments import bundled_worlds, parse_worlds


def test_worlds_with_levels() -> None:
    assert {"arithmetic", "compose", "countdown"} <= set(bundled_worlds())
    found = parse_worlds("arithmetic:3+countdown:4", seed=1)
    assert [(world.name, world.level) for world in found] == [("arithmetic", 3), ("countdown", 4)]


def test_what_is_only_measured_weighs_nothing() -> None:
    sums, algorithms = parse_worlds("arithmetic:3"), parse_worlds("reasoning_gym/gcd")
    assert measured(sums) == Earned(weight=0.0) and measured((*sums, *algorithms)).weight == 0.0
    assert isinstance(measured((*sums, *algorithms)), Checked), "what pays nothing by itself is asked"


@pytest.mark.parametrize("text", ["arithmetik:3", "scratchpad", "single_turn:2"])
def test_what_is_no_world_is_refused(text: str) -> None:
    """A module of the room is not yet a world."""
    with pytest.raises(ConfigurationError, match="there is no world"):
        parse_worlds(text)
