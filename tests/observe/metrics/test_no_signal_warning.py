"""A run that learns nothing says so once, and shows what was read in a completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strop.launch.running.launch import launch
from strop.observe.metrics.no_signal_warning import Contrast
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger


def trained(folder: Path, model: Path, recipe: str, steps: int, **values: Any) -> Path:
    rows = [{"question": f"{n}?", "answer": f"so it is {n}\n#### {10_000_000 + n:,}"} for n in range(20)]
    (folder / "hard.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sizes = {"groups_per_step": 1, "group_size": 2, "max_tokens": 4, "heldout_tasks": 1, "steps": steps}
    env = {"model": str(model), "env": str(folder / "hard.jsonl")}
    launch(build(recipe_named(recipe), env | sizes | values), folder, "run")
    return folder / "run"


def test_ten_steps_without_contrast_are_told_once_with_an_example(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path, model, "grpo", 12)
    said = capsys.readouterr().err
    assert said.count("warning: for 10 steps all rollouts of a task were rewarded alike (mean reward 0)") == 1
    assert "so nothing is learned" in said and "#### 10,000," in said and "; answer=number found '" in said
    assert "found in the completion (number) <code>" in (run / "report.html").read_text()


@pytest.mark.parametrize(("recipe", "steps"), [("grpo", 9), ("sft", 12)])
def test_few_steps_and_supervised_training_are_no_reason(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], recipe: str, steps: int
) -> None:
    trained(tmp_path, model, recipe, steps)
    assert "rewarded alike" not in capsys.readouterr().err


@pytest.mark.parametrize(("others", "is_said"), [({}, True), ({"no_contrast_share/all": 0.5}, False)])
def test_what_others_did_better_is_something_to_learn_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: dict[str, float], is_said: bool
) -> None:
    """The policy alone fails at every task, and rollouts that were helped do not."""
    ledger = Ledger(tmp_path / "ledger.db")
    watcher = Contrast(build(recipe_named("grpo"), {}), ledger)
    for step in range(1, 13):
        watcher.stepped(step, {"reward": 0.0, "no_contrast_share": 1.0, **others}, {})
    ledger.close()
    assert ("so nothing is learned" in capsys.readouterr().err) == is_said
