"""One prompt that is too long ends no run: files are looked through before the start, endless environments while they
go.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, StarvationError
from strop.filter.rewards.from_environment import Checked
from strop.generate.templates.chat_template import Template
from strop.launch.checks.prompt_lengths import leave_out_long
from strop.launch.running.launch import launch, relaunch
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder
from strop.types import Message, Task
from tests.parts import LongerIsBetter


def saved(folder: Path, lengths: list[int]) -> Path:
    """Tasks whose prompts have about so many letters, which are tokens here."""
    rows = [{"prompt": f"{number}+" + "1" * length, "answer": "2"} for number, length in enumerate(lengths)]
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def make_run(model: Path, env: str, context: int = 64) -> Run:
    setting = Setting(
        env=env, model=str(model), steps=12, groups_per_step=3, group_size=2, max_tokens=4, heldout_tasks=4
    )
    return replace(grpo(setting), context=context, rewards=(LongerIsBetter(),))


def test_a_long_prompt_of_a_file_is_left_out_said_and_recorded(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, [3] * 30 + [100])
    launch(make_run(model, str(path)), tmp_path, "run")  # 36 groups: each task would come once at least
    assert f"1 of 31 prompts of {path} leave no room for a completion in context=64" in capsys.readouterr().err
    origin = RunFolder(tmp_path / "run").read_origin()
    assert origin["left_out"][str(path)]["prompts"] == 1 and origin["left_out"][str(path)]["of"] == 31
    ledger = Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    assert ledger.num_skipped() == 0 and ledger.violations() == []


def test_a_file_of_mostly_long_prompts_is_refused_with_what_would_do(model: Path, tmp_path: Path) -> None:
    path = saved(tmp_path, [3] * 10 + [100] * 15)
    with pytest.raises(ConfigurationError, match=r"15 of 25 prompts .* set context=1\d\d"):
        launch(make_run(model, str(path)), tmp_path, "run")
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class Rambling(Arithmetic):
    """Every `every`th task has a prompt that fits nowhere."""

    every: int = 4
    name: ClassVar[str] = "rambling"

    def task(self, index: int, heldout: bool = False) -> Task:
        task = super().task(index, heldout)
        message = Message("user", task.messages[0].content + "1" * (200 if index % self.every == 0 else 0))
        return Task((message,), task.answer, self.name, self.level)


def rambling(model: Path, every: int) -> Run:
    run, env = make_run(model, "arithmetic:1"), Rambling(1, every=every)
    return replace(run, envs=(env,), sampler=replace(run.sampler, envs=(env,)))  # type: ignore[type-var]


def test_a_long_prompt_of_an_endless_env_is_skipped_with_a_fate(model: Path, tmp_path: Path) -> None:
    run = rambling(model, every=4)
    launch(run, tmp_path, "run")
    ledger = Ledger(tmp_path / "run" / "ledger.db", read_only=True)
    assert ledger.num_skipped() == 12 and ledger.violations() == []  # of 48 tasks for 36 groups
    assert "12 tasks were skipped" in (tmp_path / "run" / "report.html").read_text()


def test_it_can_be_passed_by_going_on(model: Path, tmp_path: Path) -> None:
    """A task that once stopped a run is skipped when the run goes on."""
    launch(replace(rambling(model, every=4), steps=5), tmp_path, "run")
    recipe = tmp_path / "run" / "recipe.py"
    recipe.write_text(recipe.read_text().replace("steps=5", "steps=8"))
    assert relaunch(tmp_path / "run", changed_anyway=True, trust=True)["steps"] == 8


def test_a_env_of_long_prompts_alone_ends_the_run_with_a_sentence(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no held-out prompt of rambling leaves room"):
        launch(rambling(model, every=1), tmp_path, "run")
    assert not (tmp_path / "run").exists()
    unmeasured = rambling(model, every=1)
    unmeasured.evaluation = replace(unmeasured.evaluation, tasks=0)
    with pytest.raises(StarvationError, match=r"its prompt fills the context of 64 tokens"):
        launch(unmeasured, tmp_path, "run")


def test_what_is_left_out_changes_no_sides(tmp_path: Path) -> None:
    path = saved(tmp_path, [3] * 40)
    whole, less = Table(str(path)), Table(str(path))
    first = whole.task(0)
    less.leave_out(frozenset({first.id}))
    assert less.num_tasks() == whole.num_tasks() - 1 and less.num_tasks(True) == whole.num_tasks(True)
    assert first.id not in {less.task(index).id for index in range(80)}


def test_a_table_without_held_out_tasks_is_no_reason_to_refuse(model: Path, tmp_path: Path) -> None:
    path = saved(tmp_path, [3] * 30 + [100])
    run = make_run(model, "arithmetic:1")
    run.evaluation = replace(run.evaluation, rewards=(Checked((Table(str(path), heldout_share=0.0),)),))
    (left_out,) = leave_out_long(run, Template.load(model))
    assert (len(left_out.ids), left_out.tasks) == (1, 31)
