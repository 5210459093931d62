"""Runs that train on rollouts again: each once a step, none beyond the lag, the same after a crash and in a replay."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from tests.parts import EvenOrOdd

SIZES = {"groups_per_step": 4, "group_size": 2, "max_tokens": 6, "heldout_tasks": 2, "heldout_every": 0, "steps": 4}
RECIPES: dict[str, dict[str, Any]] = {
    "arpo_gui": {"env": "arithmetic:1", "tasks": 3},
    "recap": {"env": "arithmetic:1+compose:1", "window": 1},
    "remix": {"reincarnation": 3},
    "spear": {"env": "arithmetic:1", "size": 2, "rise": 3},
}


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_replayed_is_trained_once_a_step_and_again_after_a_crash(
    model: Path, tmp_path: Path, name: str
) -> None:
    sizes = {"model": str(model), "learning_rate": 1e-3, "checkpoint_every": 2, **SIZES, **RECIPES[name]}
    launch(replace(build(recipe_named(name), sizes), rewards=(EvenOrOdd(),), rescore_every=2), tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == []
    assert ledger._rows("SELECT step FROM trainings GROUP BY step, rollout HAVING COUNT(*) > 1") == []
    for step in ledger.trained_steps():
        groups = ledger.trained_groups(step)
        assert all(group.version == step - 1 for group in groups if group.times_trained == 1), "no new one waited"
    sampled = sum(rollout.num_sampled for group in ledger.history() for rollout in group.rollouts)
    rows, digest = read_rows(folder.metrics), ledger.digest()
    ledger.close()
    assert sampled == rows[-1]["tokens_generated"], "a replayed token is nobody's sample"
    assert sum(row.get("replayed_share", 0) for row in rows) > 0
    assert all(each.is_equal for each in retrain(folder.path))
    shutil.rmtree(checkpoint.listed(folder.checkpoints)[-1])  # as if killed before it was written
    relaunch(folder.path)
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.digest() == digest and read_rows(folder.metrics) == rows
    ledger.close()
