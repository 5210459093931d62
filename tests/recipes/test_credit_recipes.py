"""Every recipe of who gets the credit runs on a tiny model: two steps, with figures that are numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from strop.folder import RunFolder, read_rows
from strop.launch import launch
from strop.preflight import check
from strop.recipes import build, recipe_named
from tests.models import save_pocket_like
from tests.parts import EvenOrOdd

# by recipe: what differs from the defaults, and figures that must be there
RECIPES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "aapo": ({}, set()),
    "alp": ({}, set()),
    "archer_hierarchical": ({}, {"value_loss", "value_grad_norm"}),
    "averaged_reference": ({"every": 1}, {"reference_version", "reference_kl"}),
    "b_coder": ({}, {"value_loss", "explained_variance"}),
    "canon": ({}, set()),
    "concise_reasoning": ({}, {"explained_variance"}),
    "conciser": ({}, set()),
    "dra_grpo": ({}, set()),
    "dvpo": ({}, {"explained_variance"}),
    "effective_rank": ({}, set()),
    "fixpo": ({}, {"kl_largest", "kl_weight"}),
    "gdpo": ({}, set()),
    "maxrl": ({}, set()),
    "mc_grpo": ({}, set()),
    "mssr": ({"group_size": 1}, set()),
    "noisygrpo": ({}, set()),
    "nsr_psr": ({}, set()),
    "per_role": ({}, set()),
    "poise": ({}, {"value_loss", "value_bias", "explained_variance"}),
    "q_sharp": ({}, {"value_loss"}),
    "reference_reset": ({"every": 1}, {"reference_version", "reference_kl"}),
    "reg_grpo": ({}, {"regression_error"}),
    "reinforce_plus_plus_baseline": ({}, set()),
    "seeupo": ({}, {"turns_updated"}),
    "spa_rl": ({}, {"explained_variance"}),
    "stop_regressing": ({}, {"value_loss", "value_cross_entropy"}),
    "token_returns": ({}, set()),
    "tricks_or_traps": ({}, set()),
    "turn_mean": ({}, set()),
    "vas": ({}, {"explained_variance"}),
}
RESTING = {"dvpo", "q_sharp", "vas"}  # a value model learns, the policy does not
SIZES = {"groups_per_step": 2, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "steps": 2, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pocket_like(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("name", RECIPES)
def test_two_steps(model: Path, tmp_path: Path, name: str) -> None:
    values, figures = RECIPES[name]
    run = build(recipe_named(name), {"model": str(model), **SIZES, **values})
    run.rewards = (EvenOrOdd(), *run.rewards[1:])  # a random model solves nothing
    assert run.recipe == name
    check(run)
    launch(run, tmp_path, "run")
    rows = read_rows(RunFolder(tmp_path / "run").metrics)
    last = rows[-1]
    assert last["step"] == 2 and all(math.isfinite(value) for value in last.values())
    moved = max(row["grad_norm"] for row in rows[1:])
    assert moved == 0 if name in RESTING else moved > 0
    assert figures <= set(last)


@pytest.mark.parametrize(("name", "field"), [("dvpo", "critic"), ("q_sharp", "values"), ("vas", "values")])
def test_what_a_value_model_learned_serves_a_second_run(model: Path, tmp_path: Path, name: str, field: str) -> None:
    for index, found in enumerate(("", str(tmp_path / "run0" / "checkpoints" / "step-2" / "values"))):
        run = build(recipe_named(name), {"model": str(model), **SIZES, field: found})
        run.rewards = (EvenOrOdd(),)
        launch(run, tmp_path, f"run{index}")
    last = read_rows(RunFolder(tmp_path / "run1").metrics)[-1]
    assert last["step"] == 2 and all(math.isfinite(value) for value in last.values())
