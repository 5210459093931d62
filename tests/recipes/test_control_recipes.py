"""Recipes that choose what is tried, how often and how far: they act, go on to the same bits, and can be replayed."""

from __future__ import annotations

import math
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from strop.disk import checkpoint
from strop.disk.folder import RunFolder, read_rows
from strop.disk.ledger import Ledger
from strop.disk.source import from_source, to_source
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.start.launch import launch, relaunch
from strop.start.preflight import check
from strop.start.retrain import retrain
from strop.weights.fingerprint import fingerprint
from tests.models import save_pocket_like
from tests.parts import EvenOrOdd

# by recipe: what differs from the defaults, and figures with the value that would say that nothing was done
RECIPES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "arrol": ({"at": 4}, {"pruned_share": 0.0, "foretold_contrast": 0.0}),
    "adcl_egsr": ({"tasks": 2, "batches": 4}, {}),
    "dars": ({"most": 8}, {"attempts_added": 0.0}),
    "dots_rr": ({"pool": 8, "every": 1, "uniform": 0.5}, {"nearer_by": 0.0, "references": 0.0}),
    "near_half": ({"pool": 8}, {"belief_spread": 0.0, "nearer_by": 0.0}),
    "pcl": ({}, {"belief_grad_norm": 0.0, "nearer_by": 0.0}),
    "v0": ({}, {"belief_spread": 0.0, "support": 0.0}),
    "drive": (
        {"warmup_steps": 0, "tasks": 4, "first": 3, "second": 2, "third": 1},
        {"tasks_left": 4.0, "pass_of_left": 0.0},
    ),
    "qwenlong_l1": ({"warmup_steps": 0, "tasks": 4, "carried": 0.9, "most": 1.0}, {"phase": 0.0, "carried_share": 0.0}),
    "rag_rl": ({"warmup_steps": 0}, {"uneven": 0.0}),
}
SIZES = {"groups_per_step": 2, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pocket_like(tmp_path_factory.mktemp("model"))


def built(name: str, model: Path) -> Run:
    values = {"model": str(model), "steps": 4, "checkpoint_every": 2, **SIZES, **RECIPES[name][0]}
    run = build(recipe_named(name), values)
    run.rewards = (EvenOrOdd(), *run.rewards[1:])  # a random model solves nothing
    return run


def found_in(folder: RunFolder) -> tuple[str, str, str]:
    last = checkpoint.listed(folder.checkpoints)[-1]
    assert last.name == "step-4"
    ledger = Ledger(folder.ledger, read_only=True)
    digest = ledger.digest()
    ledger.close()
    return fingerprint(load_file(last / "model.safetensors")), folder.metrics.read_text(), digest


@pytest.mark.parametrize("name", RECIPES)
def test_it_acts_goes_on_to_the_same_bits_and_can_be_replayed(model: Path, tmp_path: Path, name: str) -> None:
    run = built(name, model)
    check(run)
    for part in (run.strategy, run.budget, run.sampler, run.belief, run.gates, run.losses):
        assert pickle.loads(pickle.dumps(part)) == part
    written = to_source(run, "")
    launch(run, tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    assert run.recipe == name and to_source(from_source(folder.recipe), "") == written
    rows = read_rows(folder.metrics)
    assert all(math.isfinite(value) for row in rows for value in row.values())
    assert max(row["grad_norm"] for row in rows[1:]) > 0
    for figure, neutral in RECIPES[name][1].items():
        assert any(row[figure] != neutral for row in rows[1:]), figure
    before = found_in(folder)
    shutil.rmtree(folder.checkpoints / "step-4")  # as if it had been killed before
    relaunch(folder.path)
    assert found_in(folder) == before
    made = retrain(folder.path)
    assert [each.step for each in made] == [0, 1, 2, 3, 4] and all(each.is_equal for each in made)
