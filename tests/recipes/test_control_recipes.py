"""Recipes that choose what is tried, how often and how far: they act, go on to the same bits, and can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strop.recipes import build, recipe_named
from tests.parts import EvenOrOdd
from tests.recipes.going_on import SIZES, acts_and_goes_on

# by recipe: what differs from the defaults, and metrics with the value that would say that nothing was done
RECIPES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "arrol": ({"at": 4}, {"pruned_share": 0.0, "predicted_contrast": 0.0}),
    "adcl_egsr": ({"tasks": 2, "batches": 4}, {}),
    "dars": ({"most": 8}, {"rollouts_added": 0.0}),
    "dots_rr": ({"pool": 8, "every": 1, "uniform": 0.5}, {"nearer_by": 0.0, "references": 0.0}),
    "near_half": ({"pool": 8}, {"estimator_spread": 0.0, "nearer_by": 0.0}),
    "pcl": ({}, {"estimator_grad_norm": 0.0, "nearer_by": 0.0}),
    "v0": ({}, {"estimator_spread": 0.0, "support": 0.0}),
    "drive": (
        {"warmup_steps": 0, "tasks": 4, "first": 3, "second": 2, "third": 1},
        {"tasks_left": 4.0, "pass_of_left": 0.0},
    ),
    "qwenlong_l1": ({"warmup_steps": 0, "tasks": 4, "carried": 0.9, "most": 1.0}, {"phase": 0.0, "carried_share": 0.0}),
    "rag_rl": ({"warmup_steps": 0}, {"uneven": 0.0}),
}


@pytest.mark.parametrize("name", RECIPES)
def test_it_acts_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    values, neutral = RECIPES[name]
    run = build(recipe_named(name), {"model": str(model), **SIZES, **values})
    run.rewards = (EvenOrOdd(), *run.rewards[1:])  # a random model solves nothing
    rows = acts_and_goes_on(run, tmp_path, neutral)
    assert run.recipe == name and max(row["grad_norm"] for row in rows) > 0
