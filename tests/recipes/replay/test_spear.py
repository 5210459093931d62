"""SPEAR's fading pay for the use of tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.errors import ConfigurationError
from strop.recipes.replay.spear import ToolCalls
from strop.types import Group, Message
from tests.building import make_group, turn


def used(*answers: int, version: int = 0) -> Group:
    """A rollout for each number of tool answers, all but the first turn after one of them."""
    group = replace(make_group([0.0] * len(answers)), version=version)
    for rollout, count in zip(group.rollouts, answers, strict=True):
        told = (Message("tool", "7"),)
        rollout.turns = (turn(1), *(replace(turn(1), told=told) for _ in range(count)))
        rollout.turns = (*rollout.turns, replace(turn(1), told=(Message("user", "go on"),)))
    return group


def test_a_tenth_for_each_up_to_ten_of_them() -> None:
    assert ToolCalls(100)(used(0, 1, 3, 10, 25)) == pytest.approx([0.0, 0.1, 0.3, 1.0, 1.0])


def test_it_fades_along_a_cosine() -> None:
    found = [ToolCalls(100)(used(10, version=version))[0] for version in (0, 25, 50, 100, 300)]
    assert found == pytest.approx([1.0, 0.8535534, 0.5, 0.0, 0.0])
    with pytest.raises(ConfigurationError, match="fall >= 1, got 0"):
        ToolCalls(0)
