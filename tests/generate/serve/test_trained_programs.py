"""Training through a program: the same rollouts as without it, killed and resumed, and again from the ledger alone.

Who asks when decides which rows an engine computes together, and that the last bits of logprobs: tokens are the same,
weights nearly so. From the ledger they are the same bits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from strop.generate.agents.chat import Chat
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from tests.killing import killed_at
from tests.launch.running.test_resume import _hush

STEPS, GROUPS = 3, 2
pytest.importorskip("uvicorn")


def make_run(lag: int = 0) -> Run:
    sizes = {"steps": STEPS, "groups_per_step": GROUPS, "group_size": 3, "heldout_tasks": 1, "lag": lag}
    run = build(recipe_named("polar"), {"env": "keyvalue:4", "isolation": "process", "learning_rate": 1e-5} | sizes)
    run.checkpoint_every = 1
    return run


def begin(path: Path) -> None:
    _hush()
    launch(make_run(), path.parent, path.name)


def turns_of(run: Path, groups: int = STEPS * GROUPS) -> list[list[list[int]]]:
    ledger = Ledger(run / "ledger.db", read_only=True)
    assert ledger.violations() == [] and ledger.trained_more_than_once() == 0
    rollouts = [rollout for number in range(groups) for rollout in ledger.group(number).rollouts]
    return [[turn.tokens.tolist() for turn in rollout.turns] for rollout in rollouts]


def test_the_same_rollouts_as_without_it_whatever_happens(tmp_path: Path) -> None:
    launch(replace(make_run(), agent=Chat()), tmp_path, "plain")
    killed_at(1, tmp_path / "killed", __name__, begin, tmp_path / "killed")
    relaunch(tmp_path / "killed")
    assert turns_of(tmp_path / "killed") == turns_of(tmp_path / "plain")
    name = f"checkpoints/step-{STEPS}/model.safetensors"
    ours, theirs = (load_file(tmp_path / run / name) for run in ("killed", "plain"))
    assert max(float((ours[key] - theirs[key]).abs().max()) for key in ours) < 1e-5


def test_beside_a_learner_that_goes_on_it_can_be_trained_again(tmp_path: Path) -> None:
    launch(make_run(lag=2), tmp_path, "run")
    made = retrain(tmp_path / "run")
    assert len(made) == STEPS + 1 and all(each.is_equal and each.published for each in made)
