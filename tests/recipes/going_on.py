"""A run of four steps that acts, is killed after the second, goes on to the same bits, and is trained again."""

from __future__ import annotations

import math
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from strop.launch.checks.preflight import check
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import launch, relaunch
from strop.run import Run
from strop.storage import checkpoint
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.storage.run_source import from_source, to_source
from strop.weights.fingerprint import fingerprint

SIZES = {"groups_per_step": 2, "group_size": 4, "max_tokens": 8, "heldout_tasks": 2, "learning_rate": 1e-3}
SIZES |= {"steps": 4, "checkpoint_every": 2}


def acts_and_goes_on(run: Run, root: Path, neutral: Mapping[str, float]) -> list[dict[str, Any]]:
    """The rows of its steps; of `neutral` each metric must have another value in one of them."""
    check(run)
    for part in (run.strategy, run.budget, run.sampler, run.estimator, run.advantage, run.gates, run.losses):
        assert pickle.loads(pickle.dumps(part)) == part
    written = to_source(run, "")
    launch(run, root, "run")
    folder = RunFolder(root / "run")
    assert to_source(from_source(folder.recipe), "") == written
    rows = read_rows(folder.metrics)
    assert all(math.isfinite(value) for row in rows for value in row.values())
    for metric, value in neutral.items():
        assert any(row[metric] != value for row in rows[1:]), metric
    before = _found_in(folder)
    shutil.rmtree(folder.checkpoints / "step-4")  # as if it had been killed before
    relaunch(folder.path)
    assert _found_in(folder) == before
    made = retrain(folder.path)
    assert [each.step for each in made] == [0, 1, 2, 3, 4] and all(each.is_equal for each in made)
    return rows[1:]


def _found_in(folder: RunFolder) -> tuple[str, str, str]:
    last = checkpoint.listed(folder.checkpoints)[-1]
    assert last.name == "step-4"
    ledger = Ledger(folder.ledger, read_only=True)
    digest = ledger.digest()
    ledger.close()
    return fingerprint(load_file(last / "model.safetensors")), folder.metrics.read_text(), digest
