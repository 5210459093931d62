"""Written tasks wait in the sampler's memory: a run that goes on from an earlier checkpoint ends with the same bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from strop.filter.rewards.from_environment import Earned
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from tests.parts import LongerIsBetter
from tests.tiny_models import save_pocket_like

STEPS = 6


def make(model: Path, recipe: str) -> Run:
    sizes = {"steps": STEPS, "groups_per_step": 4, "group_size": 4, "max_tokens": 8, "checkpoint_every": 2}
    run = build(recipe_named(recipe), {"model": str(model), "heldout_tasks": 2, "heldout_every": 0} | sizes)
    if recipe != "teams_rl":  # which imitates
        run.rewards = (Earned(weight=0.0), LongerIsBetter())  # a random model solves nothing: every task is hard
    return run


def left(path: Path) -> tuple[str, str, str]:
    folder = RunFolder(path)
    ledger = Ledger(folder.ledger, read_only=True)
    assert ledger.violations() == []
    roles = json.loads((folder.checkpoints / f"step-{STEPS}" / "roles.json").read_text())["roles"]
    return ledger.digest(), folder.metrics.read_text(), json.dumps({n: roles[n] for n in roles if n != "buffer"})


@pytest.mark.parametrize("recipe", ["clpo", "eva", "teams_rl"])
def test_written_tasks_survive(recipe: str, tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    launch(make(model, recipe), tmp_path, "whole")
    expected = left(tmp_path / "whole")
    *_, before, last = checkpoint.listed(tmp_path / "whole" / "checkpoints")
    assert json.loads((before / "roles.json").read_text())["roles"]["sampler"]["waiting"], "or nothing is shown here"
    shutil.rmtree(last)
    relaunch(tmp_path / "whole")
    assert left(tmp_path / "whole") == expected
    ledger = Ledger(tmp_path / "whole" / "ledger.db", read_only=True)
    ids = [row[0] for row in ledger._rows("SELECT id FROM tasks ORDER BY id")]
    ledger.close()
    assert any("~" in name for name in ids) and any("~" not in name for name in ids)
    made = retrain(tmp_path / "whole")
    assert len(made) == STEPS + 1 and all(each.is_equal for each in made)
