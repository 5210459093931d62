"""Branches, hinted, retold, replayed and shown rollouts: two versions behind they are trained again to the same bits.

One environment has one completion, the other calls tools. Runs without lag are trained again beside each family's own
tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Origin
from tests.parts import EvenOrOdd
from tests.tiny_models import save_pocket_like

SIZES = {"steps": 4, "groups_per_step": 4, "group_size": 2, "max_tokens": 8, "heldout_tasks": 0, "heldout_every": 0}
# what each family is seen by, and what its recipe needs to act within a few steps
FAMILIES: dict[str, tuple[set[Origin], dict[str, Any]]] = {
    "ettrl": ({Origin.BRANCHED}, {}),
    "nudgerl": ({Origin.GUIDED, Origin.REPLAYED}, {}),
    "r3l": ({Origin.GUIDED, Origin.REPLAYED}, {}),
    "synergy_dilemma": ({Origin.TEACHER}, {"collected": 2}),
    "remix": ({Origin.POLICY}, {"reincarnation": 2}),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_two_versions_behind_it_is_trained_again_to_the_same_bits(tmp_path: Path, name: str) -> None:
    seen, fields = FAMILIES[name]
    model = save_pocket_like(tmp_path / "model")
    values = {"model": str(model), "learning_rate": 1e-3, "lag": 2, "env": "arithmetic:1+keyvalue:1"}
    run = replace(build(recipe_named(name), SIZES | values | fields), minibatches=1)
    launch(replace(run, rewards=(EvenOrOdd(),)), tmp_path, "run")
    folder = RunFolder(tmp_path / "run")
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == []
    drawn = [(step, group) for step in ledger.trained_steps() for group in ledger.trained_groups(step)]
    ledger.close()
    rollouts = [rollout for _, group in drawn for rollout in group.rollouts]
    assert {rollout.origin for rollout in rollouts} >= seen
    assert {rollout.task.source for rollout in rollouts} == {"arithmetic", "keyvalue"}
    assert max(step - 1 - group.version for step, group in drawn) == 2, "it was behind"
    assert (max(group.times_trained for _, group in drawn) > 1) == (name == "remix")
    made = retrain(folder.path)
    assert len(made) == SIZES["steps"] + 1 and all(each.is_equal for each in made)
    assert made[-1].fingerprint != made[0].fingerprint
