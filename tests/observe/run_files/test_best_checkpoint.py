"""The best checkpoint stays and has a name, its bias is said, and measurements are compared task by task."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from strop.cli.commands.evaluate import EvaluationRequest, evaluate_model
from strop.cli.commands.train import best_checkpoint
from strop.launch.running.launch import launch
from strop.observe.run_files.best_checkpoint import BestCheckpoint, BestMeasurement, expected_highest, read_best
from strop.observe.run_files.jsonl_journals import HeldOutJournal, between, gain_of, path_of
from strop.recipes import build, recipe_named
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder, read_rows
from tests.parts import LongerIsBetter
from tests.tiny_models import save_pocket_like


def heldout(accuracy: float) -> dict[str, float]:
    return {"heldout": accuracy, "heldout_low": accuracy - 0.1, "heldout_high": accuracy + 0.1}


def test_the_highest_of_several_normal_numbers() -> None:
    """1 / sqrt(pi) of two and 3 / (2 sqrt(pi)) of three; tables say 1.5388 of ten."""
    found = [expected_highest(count) for count in (1, 2, 3, 10)]
    known = [0.0, 1 / math.sqrt(math.pi), 1.5 / math.sqrt(math.pi), 1.53875]
    assert found == [pytest.approx(each, abs=1e-4) for each in known]
    # 0.2 wide is a standard error of 0.051: three times measured, 4.3 points too high
    assert BestMeasurement(20, 0.5, 0.4, 0.6, 3).bias == pytest.approx(0.0432, abs=1e-4)


def test_the_best_stays_while_newer_ones_come_and_go(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)

    def save(step: int) -> None:
        (folder.checkpoints / f"step-{step}").mkdir(parents=True, exist_ok=True)
        checkpoint.prune(folder.checkpoints, 1, best.kept)

    best = BestCheckpoint(folder, save)
    for step, accuracy in enumerate((0.2, 0.6, 0.6, 0.3)):
        best.stepped(step, heldout(accuracy), {})
        save(step)
    best.stepped(4, {"reward": 1.0}, {})
    best.stepped(5, heldout(math.nan), {})
    assert [path.name for path in checkpoint.listed(folder.checkpoints)] == ["step-1", "step-3"]
    assert (folder.checkpoints / "best").resolve().name == "step-1"
    assert read_best(folder) == best.standing == BestMeasurement(1, 0.6, 0.5, 0.7, 4), "the first of equals"
    best = BestCheckpoint(folder, save)
    best.restore()
    best.stepped(6, heldout(0.7), {})
    assert read_best(folder) == BestMeasurement(6, 0.7, pytest.approx(0.6), pytest.approx(0.8), 5)
    checkpoint.prune(folder.checkpoints, 0)
    assert [path.name for path in checkpoint.listed(folder.checkpoints)] == ["step-1", "step-6"], "0 removes none"
    save(6)
    assert [path.name for path in checkpoint.listed(folder.checkpoints)] == ["step-6"]


def measured(step: int, right: list[int], tasks: str = "a", is_unseen: bool = False) -> dict[str, object]:
    score = {"env": "w", "level": 1, "tasks": tasks, "right": right, "counted": [2] * len(right), "truncated": 0}
    return {"step": step, "scores": [score | {"is_unseen": is_unseen}]}


def test_two_measurements_are_compared_task_by_task() -> None:
    """Shares 1, 1/2, 0 against 0, 1/2, 0: one of three is won whole; (1 + 2) / 5 - (1 / 5)^2 = 0.56."""
    found = between([measured(9, [2, 1, 0])], [measured(0, [0, 1, 0])])
    assert found is not None and found.mean == pytest.approx(1 / 3)
    assert found.high == pytest.approx(0.2 + 1.959964 * math.sqrt(0.56 / 5))
    assert between([measured(9, [2, 1, 0])], [measured(0, [0, 1, 0], tasks="b")]) is None, "other tasks"
    assert between([measured(9, [2], is_unseen=True)], [measured(0, [0], is_unseen=True)]) is None, "never trained on"


def test_a_run_keeps_its_best_and_says_what_it_is_worth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = save_pocket_like(tmp_path / "model")
    sizes = {"steps": 3, "groups_per_step": 2, "group_size": 2, "max_tokens": 6, "heldout_tasks": 4, "heldout_every": 1}
    run = build(recipe_named("grpo"), {"model": str(model), "env": "arithmetic:1", **sizes})
    paid = (LongerIsBetter(),)
    run = replace(run, rewards=paid, keep_checkpoints=1, evaluation=replace(run.evaluation, rewards=paid))
    summary = launch(run, tmp_path, "run")
    folder, best = RunFolder(tmp_path / "run"), summary["best"]
    rows = [row["heldout"] for row in read_rows(folder.metrics)]
    assert best["heldout"] == max(rows) and best["step"] == rows.index(max(rows)) and best["measured"] == 4
    kept = {f"step-{best['step']}", "step-3"}
    assert {path.name for path in checkpoint.listed(folder.checkpoints)} == kept
    assert [row["step"] for row in read_rows(path_of(folder))] == [0, 1, 2, 3]
    gain = gain_of(folder)
    assert gain is not None and gain.mean == pytest.approx(summary["heldout_after"] - summary["heldout_before"])
    HeldOutJournal(folder).forget_after(1)
    assert [row["step"] for row in read_rows(path_of(folder))] == [0, 1]
    assert best["heldout"] > summary["heldout_after"] or not best_checkpoint(summary)
    said = best_checkpoint(summary | {"best": best | {"heldout": 2.0}})
    assert "highest of 4 measurements" in said[0] and said[0].endswith("checkpoints/best --fresh")
    capsys.readouterr()
    question = EvaluationRequest(str(folder.checkpoints / "best"), (), 2, 1, "1", None, None, 0, 1, is_fresh=True)
    evaluate_model(question, as_json=True)
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["env"], told["level"], told["tasks"]) == ("arithmetic", 1, 2), "of the run whose checkpoint it is"
