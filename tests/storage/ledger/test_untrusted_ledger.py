"""A ledger that somebody sent is read as if an enemy had written it: row and column are named, nothing is executed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from strop.cli.commands.rollouts import write_rollouts
from strop.cli.commands.runs import show_runs
from strop.cli.commands.show import show_rollouts
from strop.cli.commands.why import explain
from strop.errors import CheckpointError, DataError, StropError
from strop.launch.experiments.retrain import retrain
from strop.launch.running.launch import relaunch
from strop.observe.examine import examine
from strop.observe.report.write_report import write_report
from strop.storage.ledger.browser import LedgerBrowser, Wanted
from strop.storage.ledger.ledger import Ledger
from strop.storage.ledger.untrusted_ledger import opened
from strop.storage.run_folder import RunFolder, read_rows
from tests.tiny_models import small_grpo_run

_FAR = b"\x02\x00\x00\x00[]" + b"junk"
_ROWS = {
    "rewards": "UPDATE rollouts SET rewards = '{' WHERE rowid = 3",
    "facts": "UPDATE rollouts SET facts = '{\"success\": [1]}' WHERE rowid = 3",
    "turn_rewards": "UPDATE rollouts SET turn_rewards = '[1, [1]]' WHERE rowid = 3",
    "tokens": "UPDATE rollouts SET tokens = -1 WHERE rowid = 3",
    "reward": "UPDATE rollouts SET reward = 'high' WHERE rowid = 3",
    "outcome": "UPDATE rollouts SET outcome = 'won' WHERE rowid = 3",
    "turns": "UPDATE rollouts SET turns = 'text' WHERE rowid = 3",
    "messages": "UPDATE tasks SET messages = '[[[' WHERE rowid = 3",
    "level": "UPDATE tasks SET level = 'first' WHERE rowid = 3",
    "version": "UPDATE groups SET version = -7 WHERE number = 3",
    "fate": "UPDATE groups SET fate = NULL WHERE number = 3",
    "slot": "UPDATE trainings SET slot = 9e99 WHERE rowid = 3",
    "advantage": "UPDATE trainings SET advantage = 5 WHERE rowid = 3",
    "fingerprint": "UPDATE versions SET fingerprint = x'00' WHERE step = 1",
}
_TABLES = {
    "trigger evil": "CREATE TRIGGER evil AFTER UPDATE ON rollouts BEGIN SELECT 1; END",
    "view evil": "CREATE VIEW evil AS SELECT load_extension('/tmp/evil.so')",
    "table evil": "CREATE TABLE evil (x)",
    "table versions": "DROP TABLE versions; CREATE VIEW versions AS SELECT 1 AS step, 'x' AS fingerprint",
}
_BLOBS: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-40],
    "longer head": lambda data: b"\xff\xff\xff\x7f" + data[4:],
    "no JSON": lambda data: data[:4] + b"}" * (len(data) - 4),
    "empty": lambda data: b"",
    "junk behind": lambda data: _FAR,
    "negative size": lambda data: _with_head(data, lambda heads: heads[0].update(sizes=[-1, -1])),
    "huge size": lambda data: _with_head(data, lambda heads: heads[0].update(sizes=[10**30, 1])),
    "no size": lambda data: _with_head(data, lambda heads: heads[0].update(sizes="x")),
    "no message": lambda data: _with_head(data, lambda heads: heads[0].update(message=[])),
    "number for text": lambda data: _with_head(data, lambda heads: heads[0]["message"].update(content=5)),
    "sampling": lambda data: _with_head(data, lambda heads: heads[0]["sampling"].update(temperature="x")),
    "negative tokens": lambda data: _negative(data),
}


def _with_head(data: bytes, change: Callable[[list[dict[str, object]]], object]) -> bytes:
    size = int.from_bytes(data[:4], "little")
    heads = json.loads(data[4 : 4 + size])
    change(heads)
    head = json.dumps(heads).encode()
    return len(head).to_bytes(4, "little") + head + data[4 + size :]


def _negative(data: bytes) -> bytes:
    start = 4 + int.from_bytes(data[:4], "little")
    return data[:start] + b"\xf0\xff\xff\xff" + data[start + 4 :]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_grpo_run(tmp_path_factory.mktemp("made"), steps=2)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def edit(run: Path, statements: str) -> None:
    """As a stranger may: no constraint holds whoever writes the file."""
    database = sqlite3.connect(run / "ledger.db")
    database.execute("PRAGMA ignore_check_constraints=ON")
    database.execute("PRAGMA writable_schema=ON")
    database.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
    database.commit()
    database.close()
    database = sqlite3.connect(run / "ledger.db")
    database.execute("PRAGMA ignore_check_constraints=ON")
    database.executescript(statements)
    database.execute("PRAGMA writable_schema=ON")
    with sqlite3.connect(":memory:") as plain:
        from strop.storage.ledger.schema import SCHEMA

        plain.executescript(SCHEMA)
        for name, sql in plain.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            database.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?", (sql, name))
    database.commit()
    database.close()


def read_all(run: Path) -> list[Callable[[], object]]:
    folder = RunFolder(run)
    return [
        lambda: show_rollouts(run, "", 0, "advantage"),
        lambda: write_report(folder),
        lambda: examine(folder),
        lambda: write_rollouts(run, run.parent / "out.jsonl"),
        lambda: retrain(run),
        lambda: relaunch(run),
        lambda: LedgerBrowser(folder.ledger).page(Wanted(), "newest", False, None, 50),
    ]


def test_an_honest_ledger_is_read(run: Path) -> None:
    edit(run, "")
    for read in read_all(run)[:5]:
        read()


@pytest.mark.parametrize("column", list(_ROWS))
def test_a_row_that_no_ledger_writes_is_named_by_all_who_read(run: Path, column: str) -> None:
    edit(run, _ROWS[column])
    for read in read_all(run):
        with pytest.raises(CheckpointError, match=rf"ledger\.db cannot be read: row \d+ of \w+ has no {column}"):
            read()


@pytest.mark.parametrize("name", list(_TABLES))
def test_other_tables_than_a_ledgers_are_refused(run: Path, name: str) -> None:
    edit(run, _TABLES[name])
    for read in (*read_all(run), lambda: Ledger(run / "ledger.db")):
        with pytest.raises(CheckpointError, match=rf"is no ledger of strop: it has other tables \(.*{name}"):
            read()


def test_rows_that_speak_of_nothing_are_refused(run: Path) -> None:
    edit(run, "DELETE FROM tasks WHERE rowid = 2")
    with pytest.raises(CheckpointError, match="speaks of tasks that are not there"):
        opened(run / "ledger.db")


@pytest.mark.parametrize("name", list(_BLOBS))
def test_turns_that_no_ledger_writes_are_a_sentence(run: Path, name: str) -> None:
    database = sqlite3.connect(run / "ledger.db")
    for row, turns in database.execute("SELECT rowid, turns FROM rollouts").fetchall():
        database.execute("UPDATE rollouts SET turns = ? WHERE rowid = ?", (_BLOBS[name](turns), row))
    database.commit()
    database.close()
    for read in (read_all(run)[0], read_all(run)[3], read_all(run)[4]):
        with pytest.raises(DataError, match=r"the ledger cannot be read: rollout .*, column turns"):
            read()


def test_credit_of_another_length_is_a_sentence(run: Path) -> None:
    edit(run, "UPDATE trainings SET advantage = x'0000803f0000803f0000803f0000803f0000803f0000803f0000803f'")
    with pytest.raises(DataError, match="columns advantage and ratios"):
        show_rollouts(run, "", 0, "advantage")


@pytest.mark.parametrize("line", ["[1]", '{"step": "a"}', '{"step": 1, "reward": "x"}', "{" * 3, "[" * 99_999, "{}"])
def test_journals_are_looked_through_too(run: Path, line: str) -> None:
    path = run / "metrics.jsonl"
    rows = path.read_text().splitlines()
    path.write_text("\n".join([rows[0], line, *rows[1:]]) + "\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 2: "):
        read_rows(path)
    for read in (read_all(run)[2], read_all(run)[5]):
        with pytest.raises(StropError, match=r"metrics\.jsonl, line 2: "):
            read()
    path.write_text("\n".join([*rows, '{"step": 3, "rew']))
    assert len(read_rows(path)) == len(rows)  # cut short by a kill


_CAN_MOUNT = subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0 if shutil.which(
    "unshare"
) else False  # fmt: skip


@pytest.mark.skipif(not _CAN_MOUNT, reason="needs a mount of its own")
@pytest.mark.parametrize("is_live", [False, True])
def test_a_folder_that_nobody_may_write_is_read_or_refused_in_a_sentence(run: Path, is_live: bool) -> None:
    """`is_live`: copied while it was written, so that its newest rows stand in the log."""
    writer = sqlite3.connect(run / "ledger.db")
    if is_live:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute(
            "INSERT INTO groups (number, task, version, fate) SELECT 99, id, 9, 'running' FROM tasks LIMIT 1"
        )
        writer.commit()
        copy = Path(shutil.copytree(run, run.parent / "copy"))
        writer.close()
        shutil.rmtree(run)
        copy.rename(run)
        assert (run / "ledger.db-wal").stat().st_size
    writer.close()
    for words, code, said in (
        (["show", str(run)], 0, "reward"),
        (["doctor", str(run)], 0, "health checks"),
        (["why", str(run)], 0, ""),
        (["rollouts", str(run), "--out", str(run.parent / "out.jsonl")], 0, "rollouts"),
        (["report", str(run)], 1, "error: Read-only file system"),
        (["train", "--resume", str(run)], 2, "no run can be written to"),
        (["replay", str(run), "-q"], 0, "equal"),
    ):
        asked = " ".join([sys.executable, "-m", "strop", *words])
        shut = f"mount --bind {run} {run} && mount -o remount,ro,bind {run} && {asked}"
        found = subprocess.run(["unshare", "-rm", "sh", "-c", shut], capture_output=True, text=True)
        assert "Traceback" not in found.stderr, found.stderr
        told = found.stdout + found.stderr
        assert said in told and found.returncode in (code, 1 if words[0] == "doctor" else code), told
    ledger = sqlite3.connect(run / "ledger.db")
    assert ledger.execute("SELECT COUNT(*) FROM groups WHERE number = 99").fetchall() == [(int(is_live),)]


_TEXTS = (
    "[]", "5", '{"format": 5}', '{"format": 5, "files": 3, "machine": [], "recipe.py": 1, "rules": {"a": 1}}',
    '{"is_complete": "x", "verdicts": [1], "seconds": "y"}', '{"step": 5, "stages": 3}', "\xff\x00",
    '{"step": 0, "scores": [{"is_unseen": false, "tasks": 3}]}\n' * 2,
)  # fmt: skip
_FILES = ("origin.json", "summary.json", "status.json", "heldout.jsonl", "timing.jsonl", "recipe.py", "recipe.mac")


@pytest.mark.parametrize("name", _FILES)
def test_other_files_of_a_folder_are_read_or_refused_in_a_sentence(run: Path, name: str) -> None:
    whole = (run / name).read_bytes()
    readers = [*read_all(run)[:3], lambda: explain(run, False, True), lambda: show_runs(run.parent, True)]
    for text in _TEXTS:
        (run / name).write_bytes(text.encode("latin1"))
        for read in readers:
            with suppress(StropError):
                read()
        (run / name).write_bytes(whole)
