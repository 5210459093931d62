"""What recipes are made of where a plain run does not show it: other ways to go, and sizes at their limits."""

from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.recipes import build, recipe_named
from strop.recipes.rollout.deepsearch import Frontier
from strop.replay.interleaved import Interleaved
from strop.training.losses.clip import Clip


def test_the_ways_of_the_synergy_dilemma() -> None:
    made = {
        how: build(recipe_named("synergy_dilemma"), {"how": how}) for how in ("in_turns", "two_stage", "progressive")
    }
    assert [how for how, run in made.items() if run.warmup is not None] == ["two_stage"]
    assert made["two_stage"].losses == made["progressive"].losses == (Clip(),), "demonstrations are none of its losses"
    assert isinstance(made["in_turns"].buffer, Interleaved) and len(made["in_turns"].losses) == 2
    assert isinstance(made["progressive"].strategy, ReverseCurriculum)
    places, every = made["progressive"].strategy.places, made["progressive"].strategy.every
    assert (places, every) == (4, 10), "four fifths are given at first, nothing from version 40 on"
    with pytest.raises(ConfigurationError, match="no how='mixed'"):
        build(recipe_named("synergy_dilemma"), {"how": "mixed"})


def test_a_completion_shorter_than_a_node_is_a_search_one_node_deep() -> None:
    strategies = [build(recipe_named("deepsearch"), {"max_tokens": size, "tokens": 8}).strategy for size in (4, 15, 16)]
    assert [each.deepest for each in strategies if isinstance(each, Frontier)] == [1, 1, 2]
