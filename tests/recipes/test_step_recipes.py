"""Agents that look, visit, ask for help or follow an expert: killed and gone on to the same bits, and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strop.recipes import build, recipe_named
from tests.parts import EvenOrOdd
from tests.recipes.going_on import SIZES, acts_and_goes_on

# by recipe: what differs from the defaults, and metrics with the value that would say that nothing was done
RECIPES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "mgpo": ({"warmup_steps": 0, "minibatches": 2}, {"turns": 1.0}),
    "openwebvoyager": ({"warmup_steps": 0, "env": "pages:1"}, {"tries": 1.0, "kept_share": 1.0}),
    "rlinf_vla": ({"env": "guess:1", "minibatches": 2}, {"turn_drift": 0.0}),
    "self_regulation": ({"env": "keyvalue:1"}, {"helps": 0.0, "help_states": 0.0, "advantage": 1.0}),
    "stepagent": ({"env": "keyvalue:1", "form": "inverse", "group_size": 2}, {"imitation": 0.5, "advantage": 0.0}),
}
KNOWN = {"self_regulation", "stepagent"}  # paid by what a helper or an expert did


@pytest.mark.parametrize("name", RECIPES)
def test_it_acts_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    values, neutral = RECIPES[name]
    run = build(recipe_named(name), {"model": str(model), **SIZES, **values})
    if name not in KNOWN:
        run.rewards = (EvenOrOdd(), *run.rewards[1:])  # a random model solves nothing
    rows = acts_and_goes_on(run, tmp_path, neutral)
    assert run.recipe == name and max(row["grad_norm"] for row in rows) > 0
