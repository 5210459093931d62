"""Recipes that choose tasks or allot attempts by what they saw: they act, resume to the same bits, can be replayed."""

from __future__ import annotations

import math
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from strop.control.beliefs.task_counts import TaskCounts
from strop.disk.folder import RunFolder, read_rows
from strop.disk.source import from_source, to_source
from strop.recipes import build, recipe_named
from strop.start.launch import launch, relaunch
from strop.start.preflight import check
from strop.start.retrain import retrain
from tests.models import save_pocket_like
from tests.parts import EvenOrOdd
from tests.recipes.test_control_recipes import SIZES, found_in

# by recipe: what differs from the defaults, and figures with the value that would say that nothing was done
RECIPES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "alp_gmm": ({"window": 2}, {"learning_progress": 0.0, "gaussians": 0.0}),
    "cures": ({"tasks": 2, "group_size": 12}, {"preference": 0.0, "price": 1.0}),
    "dps": ({"tasks": 4}, {"chance_gain": 0.0}),
    "dump": ({}, {"preference": 0.0}),
    "gain_rl": ({"tasks": 4}, {"middle_rank": 0.0}),
    "gdro": ({"tasks": 1}, {"bin_weighting": 0.0}),
    "odf": ({}, {"dropped_groups": 0.0}),
    "prioritized_level_replay": ({"tasks": 4}, {"preference": 0.0}),
    "sec": ({}, {"preference": 0.0}),
    "sfl": ({"tasks": 4, "kept": 2}, {"score_gain": 0.0}),
    "vade": ({"tasks": 4}, {"score_gain": 0.0}),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pocket_like(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("name", RECIPES)
def test_it_acts_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    values = {"model": str(model), "steps": 4, "checkpoint_every": 2, **SIZES, "heldout_tasks": 1, **RECIPES[name][0]}
    run = build(recipe_named(name), values)
    run.rewards = (EvenOrOdd(),)  # a random model solves nothing
    check(run)
    for part in (run.budget, run.sampler, run.belief, run.advantage, run.gates):
        assert pickle.loads(pickle.dumps(part)) == part
    written = to_source(run, "")
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    assert run.recipe == name and to_source(from_source(folder.recipe), "") == written
    rows = read_rows(folder.metrics)
    assert all(math.isfinite(value) for row in rows for value in row.values())
    for figure, neutral in RECIPES[name][1].items():
        assert any(row[figure] != neutral for row in rows[1:]), figure
    before = found_in(folder)
    shutil.rmtree(folder.checkpoints / "step-4")  # as if it had been killed before
    relaunch(folder.path)
    assert found_in(folder) == before
    assert all(each.is_equal for each in retrain(folder.path))


def test_what_a_recipe_believes_reaches_its_run() -> None:
    """The table of parts has no beliefs."""
    assert build(recipe_named("vade"), {}).belief == TaskCounts(0.99, 0.7)
    assert build(recipe_named("vade"), {"per_version": 0.8, "per_visit": 0.6}).belief == TaskCounts(0.8, 0.6)
    assert build(recipe_named("cures"), {}).belief == TaskCounts(1.0, 1.0), "it forgets nothing"
    assert [build(recipe_named(name), {}).belief for name in ("gdro", "sfl")] == [TaskCounts()] * 2
