"""A run knows what it was made from: going on with other data, code, model, recipe or ledger is refused, or wanted."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from strop.cli.commands.replay import replay_run
from strop.errors import CheckpointError, ConfigurationError, StropError
from strop.filter.rewards.python_function import PythonFunction
from strop.launch.experiments.retrain import retrain
from strop.launch.running import provenance_check
from strop.launch.running.launch import launch, relaunch
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source
from tests.tiny_models import save_pocket_like

_ENV = '''
from dataclasses import dataclass
from beside import NAME
from strop.environments.bundled.arithmetic import Arithmetic

@dataclass(frozen=True)
class OwnEnvironment(Arithmetic):
    """An environment of somebody's own."""
'''


def begun(folder: Path) -> Path:
    """A run with files of all kinds, made by relative paths in `folder`."""
    save_pocket_like(folder / "model")
    rows = [{"prompt": f"{number}+1", "answer": str(number + 1)} for number in range(40)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "reward.py").write_text("def reward(prompt, completion, answer): return len(completion) % 3\n")
    (folder / "ownworld.py").write_text(_ENV)
    (folder / "beside.py").write_text('NAME = "beside"\n')
    launch(small_run(), folder / "runs", "run")
    return folder / "runs" / "run"


def small_run() -> Run:
    from ownworld import OwnEnvironment  # type: ignore[import-not-found]

    setting = Setting(
        env="tasks.jsonl", model="model", steps=2, groups_per_step=2, group_size=2, max_tokens=4, heldout_tasks=2
    )
    run = replace(
        grpo(setting),
        rewards=(PythonFunction("reward.py:reward"),),
        checkpoint_every=1,
        allow_constant_completions=True,
    )
    return replace(run, evaluation=replace(run.evaluation, unseen=(OwnEnvironment(1),)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("ownworld", "beside"):
        sys.modules.pop(name, None)
    return begun(tmp_path)


def kill_after_the_first_step(run: Path) -> None:
    shutil.rmtree(run / "checkpoints" / "step-2")


def test_nothing_changed_goes_on_from_anywhere(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in recipe.py are absolute, and own modules are found although nobody says where they lie."""
    before = (run / "metrics.jsonl").read_text()
    kill_after_the_first_step(run)
    monkeypatch.undo()  # another directory, and no sys.path
    assert Path.cwd() != tmp_path and str(tmp_path) not in sys.path
    for name in ("ownworld", "beside"):
        sys.modules.pop(name, None)
    try:
        assert relaunch(run)["is_complete"] and (run / "metrics.jsonl").read_text() == before
    finally:
        sys.path.remove(str(tmp_path))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n\n")


_CHANGES: dict[str, Callable[[Path], None]] = {
    "tasks.jsonl was changed": lambda folder: append(folder / "tasks.jsonl"),
    "reward.py was changed": lambda folder: append(folder / "reward.py"),
    "ownworld.py was changed": lambda folder: append(folder / "ownworld.py"),
    "beside.py was changed": lambda folder: append(folder / "beside.py"),
    "tokenizer.json was changed": lambda folder: append(folder / "model" / "tokenizer.json"),
    "recipe.py was changed": lambda folder: append(folder / "runs" / "run" / "recipe.py"),
    "generation_config.json is gone": lambda folder: (folder / "model" / "generation_config.json").unlink(),
}


def test_each_change_is_named_and_can_be_wanted(run: Path, tmp_path: Path) -> None:
    for said, change in _CHANGES.items():
        kept = tmp_path / "kept"
        shutil.copytree(tmp_path, kept, ignore=shutil.ignore_patterns("kept"))
        change(tmp_path)
        with pytest.raises(ConfigurationError, match=rf"began with other files: [^;]*{said}\. .*--changed-anyway"):
            relaunch(run)
        shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
        shutil.rmtree(kept)
    _CHANGES["tasks.jsonl was changed"](tmp_path)
    kill_after_the_first_step(run)
    assert relaunch(run, changed_anyway=True)["is_complete"]
    assert "tasks.jsonl was changed" in str(RunFolder(run).read_origin()["changed_anyway"])
    kill_after_the_first_step(run)
    assert relaunch(run)["is_complete"]  # it is known now


def test_a_ledger_that_is_gone_foreign_or_none_is_refused(run: Path) -> None:
    kill_after_the_first_step(run)
    (run / "ledger.db").rename(run / "kept.db")
    with pytest.raises(CheckpointError, match=r"knows nothing of step 1, .* deleted or is another run's"):
        relaunch(run)
    (run / "ledger.db").write_text("what is this?" * 100)
    for read in (relaunch, retrain):
        with pytest.raises(CheckpointError, match=r"ledger\.db is no ledger of strop"):
            read(run)
    (run / "ledger.db").unlink()
    assert relaunch(run, changed_anyway=True)["is_complete"]


def test_folders_of_other_versions_are_refused(run: Path) -> None:
    for text, said in ((None, "format before 2"), ('{"format": 1}', "format 1"), ("{", "is no JSON")):
        (run / "origin.json").unlink()
        (run / "origin.json").write_text(text or "{}")
        for read in (relaunch, retrain):
            with pytest.raises(StropError, match=said):
                read(run)


def test_a_recipe_that_cannot_be_executed_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "recipe.py"
    for text, said in (("run = (", "SyntaxError"), ("import nowhere", "needs the module nowhere"), ("1/0", "ZeroDiv")):
        path.write_text(text)
        with pytest.raises(ConfigurationError, match=said):
            from_source(path, trust=True)


def test_the_machine_is_recorded_and_replay_says_what_differs(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = RunFolder(run).read_origin()["machine"]
    wanted = {"strop", "commit", "code", "python", "torch", "transformers", "processor", "cores", "kernels", "threads"}
    assert wanted <= set(machine) and machine["threads"] == 1
    assert replay_run(run, quiet=True) == 0
    changed = json.loads((run / "origin.json").read_text())
    changed["machine"] |= {"kernels": "none: plain torch", "torch": "1.0"}
    (run / "origin.json").write_text(json.dumps(changed))
    reward = "UPDATE rollouts SET reward = reward + 1 WHERE rowid = 1"
    _edit(run / "ledger.db", reward)
    assert replay_run(run, quiet=True) == 1
    said = capsys.readouterr().out
    assert "differs at step 1" in said
    assert "torch was 1.0 and is " in said and "kernels was none: plain torch and is" in said


def _edit(path: Path, statement: str) -> None:
    import sqlite3

    with sqlite3.connect(path) as database:
        database.execute(statement)


def test_large_files_are_told_apart_by_their_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance_check, "_WHOLE", 1000)
    monkeypatch.setattr(provenance_check, "_SLICE", 100)
    path = tmp_path / "large"
    content = bytes(50_000)  # nothing in it is an x
    path.write_bytes(content)
    before = provenance_check.digest(path)
    for other in (
        content[1:],
        content[:-1] + b"x",
        b"x" + content[1:],
        content[:25_400] + b"x" * 1000 + content[26_400:],
    ):
        path.write_bytes(other)
        assert provenance_check.digest(path) != before
    path.write_bytes(content)
    assert provenance_check.digest(path) == before
