"""aurora: a whole run with a draft is the run without one, token by token and weight by weight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.disk.folder import RunFolder
from strop.disk.ledger import Ledger
from strop.generate.engines.paged import PagedEngine
from strop.recipes.setting import Setting
from strop.recipes.system.aurora import aurora
from strop.start.launch import launch
from strop.training.losses.clip import Clip
from tests.models import save_pocket_like


def test_its_parts() -> None:
    run = aurora(Setting(), guesses=3, rows=5)
    assert isinstance(run.engine, PagedEngine) and run.engine.draft is not None and run.losses == (Clip(),)
    draft = run.engine.draft
    assert (draft.tokens, draft.rows, draft.discarded, draft.every, draft.pool) == (3, 5, 0.1, 4, 64)
    assert run.engine.dtype == "float32" and aurora(Setting(device="cuda")).engine.dtype == "bfloat16"


def test_the_same_attempts_as_without_a_draft(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    sizes = {"steps": 2, "groups_per_step": 2, "group_size": 4, "max_tokens": 12, "heldout_tasks": 1}
    found: dict[str, Any] = {}
    for name in ("with", "without"):
        run = aurora(Setting(model=str(model), **sizes))
        launch(run if name == "with" else replace(run, engine=replace(run.engine, draft=None)), tmp_path, name)
        ledger = Ledger(RunFolder(tmp_path / name).ledger, read_only=True)
        attempts = [one for step in ledger.trained_steps() for group in ledger.draw(step) for one in group.trajectories]
        found[name] = [(one.id, [turn.tokens.tolist() for turn in one.turns]) for one in attempts]
        logprobs = [float(value) for one in attempts for turn in one.turns for value in turn.logprobs]
        found[f"{name}, logprobs"] = logprobs
        ledger.close()
    assert found["with"] == found["without"] and len(found["with"]) == 16
    assert found["with, logprobs"] == pytest.approx(found["without, logprobs"], abs=1e-4)
