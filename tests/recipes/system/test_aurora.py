"""aurora: a whole run with a draft is the run without one, token by token and weight by weight."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.launch.running.launch import launch
from strop.recipes.setting import Setting
from strop.recipes.system.aurora import aurora
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from tests.tiny_models import save_pocket_like


def room_of(run: Run) -> int:
    """Bytes that keys take at this moment."""
    assert isinstance(run.engine, PagedEngine)
    return run.engine._board._cache.keys.untyped_storage().nbytes()


def test_its_parts() -> None:
    run = aurora(Setting(), guesses=3, rows=5)
    assert isinstance(run.engine, PagedEngine) and run.engine.draft is not None and run.losses == (Clip(),)
    draft = run.engine.draft
    assert (draft.tokens, draft.rows, draft.discarded, draft.every, draft.pool) == (3, 5, 0.1, 4, 128)
    plain = aurora(Setting()).engine
    assert isinstance(plain, PagedEngine) and plain.draft == Draft(tokens=4, rows=64) and plain.races
    assert run.engine.dtype == "float32" and aurora(Setting(device="cuda")).engine.dtype == "bfloat16"


def test_the_same_rollouts_as_without_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one with a draft also takes turns with its trainer: keys have no room while a step is made."""
    model = save_pocket_like(tmp_path / "model")
    stepped, rooms = TorchTrainer.step, []
    monkeypatch.setattr(TorchTrainer, "step", lambda *given: rooms.append(room_of(run)) or stepped(*given))
    sizes = {"steps": 2, "groups_per_step": 2, "group_size": 4, "max_tokens": 12, "heldout_tasks": 1}
    found: dict[str, Any] = {}
    for name in ("with", "without"):
        run = aurora(Setting(model=str(model), **sizes))
        if name == "without":
            run = replace(run, engine=replace(run.engine, draft=None))
        assert isinstance(run.engine, PagedEngine)
        run.engine.takes_turns = name == "with"
        launch(run, tmp_path, name)
        ledger = Ledger(RunFolder(tmp_path / name).ledger, read_only=True)
        rollouts = [
            one for step in ledger.trained_steps() for group in ledger.trained_groups(step) for one in group.rollouts
        ]
        found[name] = [(one.id, [turn.tokens.tolist() for turn in one.turns]) for one in rollouts]
        logprobs = [float(value) for one in rollouts for turn in one.turns for value in turn.logprobs]
        found[f"{name}, logprobs"] = logprobs
        ledger.close()
    assert found["with"] == found["without"] and len(found["with"]) == 16
    assert [bool(room) for room in rooms] == [False, False, True, True]  # two steps of each
    assert found["with, logprobs"] == pytest.approx(found["without, logprobs"], abs=1e-4)
