"""Recipes that choose tasks or allot rollouts by what they saw: they act, resume to the same bits, can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strop.control.estimators.pass_rate_counts import TaskCounts
from strop.recipes import build, recipe_named
from tests.parts import EvenOrOdd
from tests.recipes.going_on import SIZES, acts_and_goes_on

# by recipe: what differs from the defaults, and metrics with the value that would say that nothing was done
RECIPES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "alp_gmm": ({"window": 2}, {"learning_progress": 0.0, "gaussians": 0.0}),
    "cures": ({"tasks": 2, "group_size": 12}, {"preference": 0.0, "price": 1.0}),
    "dps": ({"tasks": 4}, {"probability_gain": 0.0}),
    "dump": ({}, {"preference": 0.0}),
    "gain_rl": ({"tasks": 4}, {"middle_rank": 0.0}),
    "gdro": ({"tasks": 1}, {"bin_weighting": 0.0}),
    "odf": ({}, {"dropped_groups": 0.0}),
    "prioritized_level_replay": ({"tasks": 4}, {"preference": 0.0}),
    "sec": ({}, {"preference": 0.0}),
    "sfl": ({"tasks": 4, "kept": 2}, {"score_gain": 0.0}),
    "vade": ({"tasks": 4}, {"score_gain": 0.0}),
}


@pytest.mark.parametrize("name", RECIPES)
def test_it_acts_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    values, neutral = RECIPES[name]
    run = build(recipe_named(name), {"model": str(model), **SIZES, "heldout_tasks": 1, **values})
    run.rewards = (EvenOrOdd(),)  # a random model solves nothing
    acts_and_goes_on(run, tmp_path, neutral)
    assert run.recipe == name


def test_what_a_recipe_believes_reaches_its_run() -> None:
    """The table of parts has no pass-rate estimators."""
    assert build(recipe_named("vade"), {}).estimator == TaskCounts(0.99, 0.7)
    assert build(recipe_named("vade"), {"per_version": 0.8, "per_visit": 0.6}).estimator == TaskCounts(0.8, 0.6)
    assert build(recipe_named("cures"), {}).estimator == TaskCounts(1.0, 1.0), "it forgets nothing"
    assert [build(recipe_named(name), {}).estimator for name in ("gdro", "sfl")] == [TaskCounts()] * 2
