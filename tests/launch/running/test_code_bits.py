"""Programs in the sandbox at lag 0: killed and resumed, or trained again from the ledger alone, a run has the same
bits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.sandbox.kernel_isolation.confine import best_isolation
from strop.storage.ledger.ledger import Ledger
from tests.killing import killed_at
from tests.launch.running import test_resume
from tests.launch.running.test_resume import _hush
from tests.tiny_models import save_pocket_like

STEPS = 4
pytestmark = pytest.mark.skipif(best_isolation() is None, reason="isolation: there is none to run programs behind")


def make_run(model: Path) -> Run:
    """Random weights write nothing right, and fail in more than one way."""
    sizes = {"steps": STEPS, "groups_per_step": 2, "group_size": 3, "max_tokens": 8, "heldout_tasks": 1}
    run = build(recipe_named("rltf"), {"model": str(model), "warmup_steps": 0, "learning_rate": 1e-3} | sizes)
    run.checkpoint_every = 2
    return run


def begin(model: Path, path: Path) -> None:
    _hush()
    launch(make_run(model), path.parent, path.name)


def test_killed_and_resumed_or_trained_again(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    launch(make_run(model), tmp_path, "whole")
    expected = test_resume.leftovers(tmp_path / "whole", STEPS)
    told = Ledger(tmp_path / "whole" / "ledger.db", read_only=True)
    facts = {rollout.facts["feedback"] for number in range(6) for rollout in told.group(number).rollouts}
    assert {-1.0, 1.0} <= facts  # of the policy and of the environment's own programs
    killed_at(2, tmp_path / "killed", __name__, begin, model, tmp_path / "killed")
    relaunch(tmp_path / "killed")
    assert test_resume.leftovers(tmp_path / "killed", STEPS) == expected
    made = retrain(tmp_path / "whole")
    assert len(made) == STEPS + 1 and all(each.is_equal and each.published for each in made)
