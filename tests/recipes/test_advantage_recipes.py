"""Every recipe of who gets the advantage runs on a tiny model: two steps, with metrics that are numbers."""

from __future__ import annotations

import math
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from strop.launch.checks.preflight import check
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.storage.run_folder import RunFolder, read_rows
from strop.storage.run_source import from_source, to_source
from strop.weights.fingerprint import fingerprint
from tests.parts import EvenOrOdd

# by recipe: what differs from the defaults, and metrics that must be there
RECIPES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "aapo": ({}, set()),
    "alp": ({}, set()),
    "archer_hierarchical": ({}, {"value_loss", "value_grad_norm"}),
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
    "moving_reference": ({"every": 1, "keep": 0.995}, {"reference_version", "reference_kl"}),
    "mssr": ({"group_size": 1}, set()),
    "noisygrpo": ({}, set()),
    "nsr_psr": ({}, set()),
    "per_role": ({}, set()),
    "poise": ({}, {"value_loss", "value_bias", "explained_variance"}),
    "q_sharp": ({}, {"value_loss"}),
    "reg_grpo": ({}, {"regression_error"}),
    "reinforce_plus_plus": ({"advantage": "tokens"}, set()),
    "seeupo": ({}, {"turns_updated"}),
    "spa_rl": ({}, {"explained_variance"}),
    "stop_regressing": ({}, {"value_loss", "value_cross_entropy"}),
    "tricks_or_traps": ({}, set()),
    "turn_mean": ({}, set()),
    "vas": ({}, {"explained_variance"}),
}
RESTING = {"b_coder", "dvpo", "q_sharp", "vas"}  # a value model learns, the policy does not
REMEMBERING = {
    "archer_hierarchical",
    "b_coder",
    "effective_rank",
    "fixpo",
    "moving_reference",
    "mssr",
    "poise",
    "seeupo",
    "spa_rl",
    "stop_regressing",
}  # state of their own, in checkpoints
REPLAYED = {"aapo", "mc_grpo", "mssr", "noisygrpo", "nsr_psr", "poise", "seeupo", "turn_mean"}
SIZES = {"groups_per_step": 2, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "steps": 2, "learning_rate": 1e-3}


@pytest.mark.parametrize("name", RECIPES)
def test_it_runs_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    """What is remembered is in checkpoints, what gates measured and strategies marked in the ledger."""
    values, metrics = RECIPES[name]
    longer = {"steps": 4, "checkpoint_every": 2} if name in REMEMBERING else {}
    run = build(recipe_named(name), {"model": str(model), **SIZES, **values, **longer})
    run.rewards = (EvenOrOdd(), *run.rewards[1:])  # a random model solves nothing
    assert run.recipe == name
    check(run)
    for part in (run.advantage, run.values, run.strategy, run.gates, run.losses):
        assert pickle.loads(pickle.dumps(part)) == part
    written = to_source(run, "")
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    assert to_source(from_source(folder.recipe), "") == written
    rows = read_rows(folder.metrics)
    last = rows[-1]
    assert last["step"] == run.steps and all(math.isfinite(value) for value in last.values())
    moved = max(row["grad_norm"] for row in rows[1:])
    assert moved == 0 if name in RESTING else moved > 0
    assert metrics <= set(last)
    if name in REMEMBERING:
        before = bits(folder)
        shutil.rmtree(folder.checkpoints / "step-4")  # as if it had been killed before
        relaunch(folder.path)
        assert bits(folder) == before
    if name in REPLAYED:
        made = retrain(folder.path)
        assert [each.step for each in made] == list(range(run.steps + 1)) and all(each.is_equal for each in made)


def bits(folder: RunFolder) -> tuple[str, str]:
    """Weights and metrics after the fourth step."""
    return fingerprint(load_file(folder.checkpoints / "step-4" / "model.safetensors")), folder.metrics.read_text()


@pytest.mark.parametrize(
    ("name", "field"), [("b_coder", "values"), ("dvpo", "critic"), ("q_sharp", "values"), ("vas", "values")]
)
def test_what_a_value_model_learned_serves_a_second_run(model: Path, tmp_path: Path, name: str, field: str) -> None:
    for index, found in enumerate(("", str(tmp_path / "run0" / "checkpoints" / "step-2" / "values"))):
        run = build(recipe_named(name), {"model": str(model), **SIZES, field: found})
        run.rewards = (EvenOrOdd(),)
        launch(run, tmp_path, f"run{index}")
    last = read_rows(RunFolder(tmp_path / "run1").metrics)[-1]
    assert last["step"] == 2 and all(math.isfinite(value) for value in last.values())
