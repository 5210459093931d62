"""Journals, ledger and checkpoints of a run that goes on tell of the same steps, or it is said which are missing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from strop.errors import CheckpointError, DataError
from strop.launch.running.launch import launch, relaunch
from strop.observe.run_files.jsonl_journals import Journal
from strop.storage.run_folder import RunFolder, read_rows, write_rows
from strop.types import Metrics
from tests.launch.running.test_resume import STEPS, leftovers, make_run
from tests.tiny_models import save_pocket_like


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    launch(make_run(save_pocket_like(folder / "model")), folder, "run")
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """As if it had been killed behind step 9."""
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    shutil.rmtree(path / "checkpoints" / f"step-{STEPS}")
    return path


def lines_of(path: Path, keep: Callable[[int], bool]) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for number, line in enumerate(lines) if keep(number)))


def forget(run: Path, statement: str) -> None:
    with sqlite3.connect(run / "ledger.db") as database:
        database.execute(statement)
    database.close()


def keep(name: str, which: Callable[[int], bool]) -> Callable[[Path], object]:
    return lambda run: lines_of(run / name, which)


def twice(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join([*lines[:4], *lines[3:]]))


_HOLES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut metrics": (keep("metrics.jsonl", lambda n: n < 1), r"metrics\.jsonl has no row of steps 1, 2, 3, 4, 5 and 4 "),
    "cut timing": (keep("timing.jsonl", lambda n: n < 9), r"timing\.jsonl has no row of step 9\."),
    "no metrics": (lambda run: (run / "metrics.jsonl").unlink(), r"metrics\.jsonl has no row of steps 0, 1"),
    "a line": (keep("metrics.jsonl", lambda n: n != 4), r"metrics\.jsonl has no row of step 4\."),
    "measurements": (keep("heldout.jsonl", lambda n: n != 1), r"heldout\.jsonl has no row of step 4\."),
    "twice": (twice, "rows of a step twice"),
    "versions": (lambda run: forget(run, "DELETE FROM versions WHERE step IN (3, 4)"), "nothing of steps 3, 4"),
    "trainings": (lambda run: forget(run, "DELETE FROM trainings WHERE step = 2"), "nothing of step 2"),
}


@pytest.mark.parametrize("name", list(_HOLES))
def test_a_hole_is_told_and_nothing_is_trained(run: Path, name: str) -> None:
    cut, said = _HOLES[name]
    cut(run)
    before = {path: path.read_bytes() for path in run.glob("*.jsonl")}
    with pytest.raises(CheckpointError, match=rf"goes on after step 9, and (.|\n)*{said}(.|\n)*--changed-anyway"):
        relaunch(run)
    assert {path: path.read_bytes() for path in run.glob("*.jsonl")} == before


def test_it_says_how_far_nothing_is_missing(run: Path, whole: Path) -> None:
    lines_of(run / "metrics.jsonl", lambda n: n < 8)
    shutil.copytree(run / "checkpoints" / "step-9", run / "checkpoints" / "step-6", dirs_exist_ok=True)
    with pytest.raises(CheckpointError, match="remove checkpoints after step-6, up to which nothing is missing"):
        relaunch(run)


def test_wanted_the_hole_stays_and_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines_of(run / "metrics.jsonl", lambda n: n not in (4, 5))
    assert relaunch(run, changed_anyway=True)["is_complete"]
    assert "metrics.jsonl has no row of steps 4, 5: it stays so" in capsys.readouterr().err


def test_what_a_kill_leaves_is_no_hole(run: Path, whole: Path) -> None:
    """Rows of steps that are made again, one half written, one in the first journal alone."""
    lines_of(run / "timing.jsonl", lambda n: n < 10)
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text[: -len(text.splitlines()[-1]) // 2])
    relaunch(run)
    assert leftovers(run) == leftovers(whole)


def test_a_journal_is_written_anew_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed while it goes on must not have lost the steps before."""
    journal = Journal(tmp_path / "metrics.jsonl", tmp_path / "timing.jsonl")
    for step in range(4):
        journal.stepped(step, {"reward": 1.0}, {"seconds": 1.0})

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        journal.forget_after(2)
    assert len(read_rows(tmp_path / "metrics.jsonl")) == 4
    monkeypatch.undo()
    journal.forget_after(2)
    assert [row["step"] for row in read_rows(tmp_path / "timing.jsonl")] == [0, 1, 2]
    write_rows(tmp_path / "metrics.jsonl", [{"no": "step"}, {"step": 1}])
    with pytest.raises(DataError, match="line 1: a row is an object with the number of its step"):
        journal.forget_after(0)


@dataclass
class At:
    """Does something to the run at a step."""

    step: int
    act: Callable[[], object]

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if step == self.step:
            self.act()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_ledger_that_is_lost_while_it_is_written_ends_the_run_within_a_step(
    whole: Path, tmp_path: Path, is_replaced: bool
) -> None:
    run, model = tmp_path / "run", whole.parent / "model"

    def lose() -> None:
        (run / "ledger.db").unlink()
        if is_replaced:
            shutil.copy(whole / "ledger.db", run / "ledger.db")

    with pytest.raises(CheckpointError, match=r"deleted or replaced while the run wrote to it \(step 6\)(.|\n)*mv "):
        launch(make_run(model), tmp_path, "run", [At(5, lose)])
    assert [row["step"] for row in read_rows(RunFolder(run).metrics)] == list(range(6))
    if not is_replaced:
        with pytest.raises(CheckpointError, match="knows nothing of step 3"):
            relaunch(run)
    (run / "ledger.kept.db").rename(run / "ledger.db")
    relaunch(run)
    assert leftovers(run) == leftovers(whole)
