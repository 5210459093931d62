"""Ledger: the fate of every group and rollout, exactly once, in SQLite.

A row carries `at`, the weight version when it was written, and no wall-clock time: the same run leaves the same rows. A
checkpoint of step s is taken before anything with `at >= s` happens, so `rollback(s)` restores exactly that moment. A
rollout's `place` is its place in the group as it was kept (NULL: it was not); a training's `slot` is the place of the
group, `number`, in the batch. Both fix the order of additions, so that a run can be retrained from the ledger alone.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from strop.backends import WeightVersion
from strop.errors import CheckpointError, ConfigurationError
from strop.storage.ledger.rows import rollout_of, rollout_row, task_of, training_rows, with_advantages
from strop.storage.ledger.schema import (
    COMPOSED,
    FATES,
    OFFERED,
    PROMISES,
    ROLLOUT,
    SCHEMA,
    SUCCESS_OF,
    WITH_ADVANTAGES,
    Offered,
)
from strop.storage.ledger.turn_bytes import plain_message
from strop.storage.ledger.untrusted_ledger import LONGEST, check_tables, opened
from strop.storage.run_folder import FORMAT
from strop.types import Group, Outcome, Rollout, Task

_MOST_VALUES = 30_000  # of one statement; SQLite takes 32,766


class Ledger:
    """Written by the pipeline; read on resume, by reports and by proofs."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._path = path
        self._database = opened(path) if read_only else sqlite3.connect(path)
        if read_only:
            return
        try:
            self._database.execute("PRAGMA trusted_schema=OFF")
            self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            check_tables(self._database, path)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")
        except sqlite3.OperationalError:  # it cannot be opened or written: whoever asked says what to do
            raise
        except sqlite3.DatabaseError as error:
            raise CheckpointError(f"{path} is no ledger of strop: {error}") from error

    # ---- what the pipeline writes

    def admitted(self, number: int, task: Task, version: int) -> None:
        """A task was chosen and its rollouts begin."""
        self._know(task)
        self._run(
            "INSERT INTO groups (number, task, version, fate) VALUES (?, ?, ?, 'running')", (number, task.id, version)
        )

    def skipped(self, number: int, reason: str, at: int) -> None:
        """No rollout of this task can be made."""
        self._run("UPDATE groups SET fate='skipped', reason=?, at=? WHERE number=?", (reason, at, number))

    def _know(self, task: Task) -> None:
        messages = json.dumps([plain_message(message) for message in task.messages])
        tools = json.dumps([vars(tool) for tool in task.tools])
        row = (task.id, task.source, task.level, messages, task.answer, tools, task.columns)
        self._run("INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def finished(self, group: Group, kept: Group | None, reason: str, at: int, unused: Sequence[Rollout] = ()) -> None:
        """The group was scored and either kept (perhaps trimmed, or with a rollout added) or dropped for a reason.

        `unused` rollouts were made on the way and not brought.
        """
        places = {t.id: place for place, t in enumerate(kept.scored)} if kept else {}
        as_kept = {t.id: t for t in kept.scored} if kept else {}
        rollouts = {t.id: t for t in (*group.rollouts, *unused)} | as_kept
        for task in {t.task.id: t.task for t in rollouts.values() if t.task.id != group.task.id}.values():
            self._know(task)
        self._insert("rollouts", [rollout_row(t, group.number, places.get(t.id)) for t in rollouts.values()])
        is_failed = all(t.outcome is Outcome.FAILED for t in group.rollouts)
        fate = "waiting" if places else ("skipped" if not rollouts else "failed" if is_failed else "gated")
        self._run(
            "UPDATE groups SET fate=?, reason=?, at=?, predicted=?, spread=? WHERE number=?",
            (fate, reason, at, *(group.predicted or (None, None)), group.number),
        )

    def trained(self, groups: Iterable[Group], step: int) -> None:
        """These groups were in the optimizer step that made version `step`."""
        rows = [row for slot, group in enumerate(groups) for row in training_rows(step, slot, group)]
        self._insert("trainings", rows)
        for table, key, column in (("rollouts", "id", "rollout"), ("groups", "number", "number")):
            these = f"SELECT {column} FROM trainings WHERE step=?"
            self._run(f"UPDATE {table} SET fate='trained' WHERE {key} IN ({these})", (step,))
        self._database.commit()

    def published(self, version: WeightVersion) -> None:
        """These weights were delivered; those of a step that is made again must be the same."""
        self._run("INSERT OR IGNORE INTO versions VALUES (?, ?)", (version.step, version.fingerprint))
        self._database.commit()
        ((recorded,),) = self._rows("SELECT fingerprint FROM versions WHERE step=?", (version.step,))
        if recorded != version.fingerprint:
            raise CheckpointError(
                f"the weights of step {version.step} are {version.fingerprint}, and were {recorded} when it was made"
            )

    def sync(self) -> None:
        """Make everything so far survive a power cut; called before a checkpoint becomes valid."""
        self._database.commit()
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def rollback(self, step: int) -> None:
        """Forget all that happened after the checkpoint of `step`."""
        late = "SELECT number FROM groups WHERE version >= :step OR at >= :step"
        kept = "SELECT rollout FROM trainings WHERE step <= :step"  # a buffer may have drawn it more than once
        undone = f"SELECT rollout FROM trainings WHERE step > :step AND rollout NOT IN ({kept})"
        for statement in (
            # a buffer may train the rollouts of a group at different steps: one that was trained on does not wait
            f"UPDATE groups SET fate='waiting' WHERE number IN (SELECT number FROM rollouts WHERE id IN ({undone})) "
            "AND number NOT IN (SELECT number FROM trainings WHERE step <= :step)",
            f"UPDATE rollouts SET fate='waiting' WHERE id IN ({undone})",
            "DELETE FROM trainings WHERE step > :step",
            "DELETE FROM versions WHERE step > :step",
            f"DELETE FROM rollouts WHERE number IN ({late})",
            "DELETE FROM groups WHERE version >= :step",
            "UPDATE groups SET fate='running', reason='', at=NULL, predicted=NULL, spread=NULL WHERE at >= :step",
            "DELETE FROM tasks WHERE id NOT IN (SELECT task FROM groups UNION SELECT task FROM rollouts)",
        ):
            self._database.execute(statement, {"step": step})
        self._database.commit()

    def rescue(self, to: Path) -> None:
        """Write all that is known to another file, although that of this ledger may be gone."""
        self._database.commit()
        copy = sqlite3.connect(to)
        self._database.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, with no log beside it
        copy.close()

    def close(self) -> None:
        self._database.commit()  # a run that ends by an error leaves the rollouts that led to it
        self._database.close()

    # ---- what others read

    @property
    def next_number(self) -> int:
        (number,) = self._rows("SELECT COALESCE(MAX(number) + 1, 0) FROM groups")[0]
        return int(number)

    def running(self) -> list[tuple[int, Task, int]]:
        """Groups that were admitted and not finished: number, task, version."""
        rows = self._rows("SELECT number, task, version FROM groups WHERE fate='running' ORDER BY number")
        return [(number, self.task(task), version) for number, task, version in rows]

    def waiting(self) -> dict[int, int]:
        """Groups that were kept and not yet trained: number and version."""
        return dict(self._rows("SELECT number, version FROM groups WHERE fate='waiting' ORDER BY number"))

    def task(self, id_: str) -> Task:
        query = "SELECT source, level, messages, answer, tools, columns FROM tasks WHERE id=?"
        return task_of(id_, self._rows(query, (id_,))[0])

    def group(self, number: int) -> Group:
        """A finished group as it was kept."""
        return self._of(number, "place IS NOT NULL ORDER BY place")

    def whole(self, number: int) -> Group:
        """A finished group with all rollouts that were made."""
        return self._of(number, "1 ORDER BY rowid")

    def _of(self, number: int, chosen: str) -> Group:
        rows = self._rows(f"SELECT a.task, {ROLLOUT} FROM rollouts a WHERE number=? AND {chosen}", (number,))
        return self._group(number, [rollout_of(self.task(row[0]), *row[1:]) for row in rows])

    def history(self) -> Iterator[Group]:
        """Every finished group in order with all rollouts that were made, kept or not: what was learned of tasks."""
        return (self.whole(number) for (number,) in self._rows("SELECT DISTINCT number FROM rollouts ORDER BY number"))

    def composed(self, count: int) -> list[tuple[Group, dict[str, str]]]:
        """Groups that are more than plain siblings, of most kinds first, with fates by id ("": why it was left out)."""
        numbers = [number for (number,) in self._rows(COMPOSED, (count,))]
        return [(self.whole(number), dict(self._rows(FATES, (number,)))) for number in numbers]

    def _group(self, number: int, rollouts: list[Rollout], times: int = 0) -> Group:
        query = "SELECT task, version, predicted, spread FROM groups WHERE number=?"
        if not (rows := self._rows(query, (number,))):
            raise CheckpointError(f"the ledger knows no group {number}: is it the ledger of this run?")
        task, version, mean, variance = rows[0]
        predicted = None if mean is None else (mean, variance)
        return Group(number, self.task(task), rollouts, version, times, predicted)

    def trained_groups(self, step: int) -> list[Group]:
        """The groups that the optimizer step to version `step` saw, in their order, as they were before advantage."""
        rows = self._rows(
            f"SELECT t.slot, t.number, a.task, {ROLLOUT} "
            "FROM trainings t JOIN rollouts a ON a.id = t.rollout "
            "WHERE t.step = ? ORDER BY t.slot, t.place",
            (step,),
        )
        slots: dict[tuple[int, int], list[Rollout]] = {}
        for slot, number, task, *rollout in rows:
            slots.setdefault((slot, number), []).append(rollout_of(self.task(task), *rollout))
        return [self._drawn(number, rollouts, step) for (_, number), rollouts in slots.items()]

    def _drawn(self, number: int, rollouts: list[Rollout], step: int) -> Group:
        query = "SELECT COUNT(DISTINCT step) FROM trainings WHERE number=? AND step <= ?"
        ((times,),) = self._rows(query, (number, step))
        return self._group(number, rollouts, times)

    def trained_steps(self) -> list[int]:
        """Steps that were trained, in order."""
        return [step for (step,) in self._rows("SELECT DISTINCT step FROM trainings ORDER BY step")]

    def rated_steps(self) -> list[int]:
        """Those of which some rollouts have ratios."""
        return [step for (step,) in self._rows("SELECT DISTINCT step FROM trainings WHERE ratios IS NOT NULL")]

    def fingerprints(self) -> dict[int, str]:
        """Of the weights of each version, as they were published."""
        return dict(self._rows("SELECT step, fingerprint FROM versions ORDER BY step"))

    def sample(self, step: int, count: int) -> list[Rollout]:
        """Some rollouts trained at `step`, for reading."""
        known = f"SELECT t.advantage, t.ratios, a.task, {ROLLOUT} FROM trainings t JOIN rollouts a ON a.id=t.rollout"
        rows = self._rows(f"{known} WHERE t.step=? ORDER BY a.number, a.rowid LIMIT ?", (step, count))
        return [self._with_advantages(*row) for row in rows]

    def successes(self, least: float) -> dict[str, list[str]]:
        """The policy's own rollouts of at least this success, in order: ids by task."""
        found: dict[str, list[str]] = {}
        query = f"SELECT task, id FROM rollouts WHERE origin='policy' AND {SUCCESS_OF} >= ? ORDER BY number, rowid"
        for task, name in self._rows(query, (least,)):
            found.setdefault(task, []).append(name)
        return found

    def rollout(self, id_: str) -> Rollout:
        for row in self._rows(f"{WITH_ADVANTAGES} WHERE a.id=?", (id_,)):
            return self._with_advantages(*row)
        raise ConfigurationError(f"the ledger has no rollout {id_!r}")

    def _with_advantages(self, advantage: bytes | None, ratios: bytes | None, task: str, *row: Any) -> Rollout:
        return with_advantages(rollout_of(self.task(task), *row), advantage, ratios)

    def offered(self) -> list[Offered]:
        """Every admitted group in order, whatever became of it."""
        rows = self._rows(OFFERED)
        return [Offered(source, level, bool(trained), *rest) for source, level, trained, *rest in rows]

    def counts(self) -> dict[str, int]:
        """Rollouts by fate."""
        return dict(self._rows("SELECT fate, COUNT(*) FROM rollouts GROUP BY fate ORDER BY fate"))

    def num_skipped(self) -> int:
        """Tasks that nobody could rollout."""
        return int(self._rows("SELECT COUNT(*) FROM groups WHERE fate='skipped'")[0][0])

    def violations(self) -> list[str]:
        """Broken promises: a rollout without exactly one fate, trained twice, or trained though failed."""
        found = {name: int(self._rows(query)[0][0]) for name, query in PROMISES.items()}
        return [f"{name}: {count}" for name, count in found.items() if count]

    def trained_more_than_once(self) -> int:
        """Rollouts in more than one optimizer step; 0 unless the buffer replays."""
        query = "SELECT COUNT(*) FROM (SELECT rollout FROM trainings GROUP BY rollout HAVING COUNT(*) > 1)"
        return int(self._rows(query)[0][0])

    def digest(self) -> str:
        """A hash of every row: equal digests mean equal ledgers."""
        state = hashlib.sha256()
        of_trainings = "step, slot, place"
        keys = {"tasks": "id", "groups": "number", "rollouts": "id", "trainings": of_trainings, "versions": "step"}
        for table, key in keys.items():
            for row in self._database.execute(f"SELECT * FROM {table} ORDER BY {key}"):
                state.update(repr((table, *row)).encode())
        return state.hexdigest()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._database.execute(statement, values)

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """In as few statements as can be: each hands the interpreter to other threads, and waits to have it back."""
        width = len(rows[0]) if rows else 1
        for first in range(0, len(rows), _MOST_VALUES // width):
            part = rows[first : first + _MOST_VALUES // width]
            row = f"({', '.join('?' * width)})"
            values = [value for each in part for value in each]
            self._run(f"INSERT INTO {table} VALUES {', '.join([row] * len(part))}", values)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(query, values).fetchall()
