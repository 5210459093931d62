"""The ledger: the fate of every group and attempt, exactly once, on SQLite.

A row carries `at`, the weight version when it was written, and no wall-clock time: the same run leaves the same rows.
A checkpoint of step s is taken before anything with `at >= s` happens, so `rollback(s)` restores exactly that moment.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from strop.types import Group, Message, Origin, Outcome, Sampling, Task, ToolCall, Trajectory, Turn

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, level INTEGER NOT NULL, messages TEXT NOT NULL, answer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS groups (
    number INTEGER PRIMARY KEY, task TEXT NOT NULL REFERENCES tasks(id), version INTEGER NOT NULL,
    fate TEXT NOT NULL CHECK (fate IN ('running', 'waiting', 'gated', 'failed', 'trained')),
    reason TEXT NOT NULL DEFAULT '', at INTEGER);
CREATE TABLE IF NOT EXISTS attempts (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL REFERENCES groups(number), outcome TEXT NOT NULL,
    origin TEXT NOT NULL, reward REAL, rewards TEXT NOT NULL, error TEXT NOT NULL, tokens INTEGER NOT NULL,
    fate TEXT NOT NULL CHECK (fate IN ('waiting', 'gated', 'failed', 'trained')), turn_rewards TEXT NOT NULL,
    turns BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_by_group ON attempts(number);
CREATE TABLE IF NOT EXISTS trainings (
    step INTEGER NOT NULL, attempt TEXT NOT NULL REFERENCES attempts(id), PRIMARY KEY (step, attempt));
"""


class Ledger:
    """Written by the pipeline, read by resume, reports and proofs."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        if read_only:
            self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            return
        self._database = sqlite3.connect(path)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.executescript(_SCHEMA)

    # ---- what the pipeline writes

    def admitted(self, number: int, task: Task, version: int) -> None:
        """A task was chosen and its attempts begin."""
        messages = json.dumps([asdict(message) for message in task.messages])
        self._run(
            "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?)",
            (task.id, task.source, task.level, messages, task.answer),
        )
        self._run(
            "INSERT INTO groups (number, task, version, fate) VALUES (?, ?, ?, 'running')", (number, task.id, version)
        )

    def finished(self, group: Group, kept: Group | None, reason: str, at: int) -> None:
        """The group was scored and either kept (perhaps trimmed) or dropped for a reason."""
        kept_ids = {t.id for t in kept.scored} if kept else set()
        self._database.executemany(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [_attempt_row(t, group.number, t.id in kept_ids) for t in group.trajectories],
        )
        fate = "waiting" if kept_ids else ("gated" if group.scored else "failed")
        self._run("UPDATE groups SET fate=?, reason=?, at=? WHERE number=?", (fate, reason, at, group.number))
        self._database.commit()

    def trained(self, groups: Iterable[Group], step: int) -> None:
        """These groups were in the optimizer step that made version `step`."""
        for group in groups:
            ids = [(step, t.id) for t in group.scored]
            self._database.executemany("INSERT INTO trainings VALUES (?, ?)", ids)
            self._database.executemany("UPDATE attempts SET fate='trained' WHERE id=?", [(id_,) for _, id_ in ids])
            self._run("UPDATE groups SET fate='trained' WHERE number=?", (group.number,))
        self._database.commit()

    def sync(self) -> None:
        """Make everything so far survive a power cut; called before a checkpoint becomes valid."""
        self._database.commit()
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def rollback(self, step: int) -> None:
        """Forget all that happened after the checkpoint of `step`."""
        late = "SELECT number FROM groups WHERE version >= :step OR at >= :step"
        undone = "SELECT attempt FROM trainings WHERE step > :step"
        for statement in (
            f"UPDATE groups SET fate='waiting' WHERE number IN (SELECT number FROM attempts WHERE id IN ({undone}))",
            f"UPDATE attempts SET fate='waiting' WHERE id IN ({undone})",
            "DELETE FROM trainings WHERE step > :step",
            f"DELETE FROM attempts WHERE number IN ({late})",
            "DELETE FROM groups WHERE version >= :step",
            "UPDATE groups SET fate='running', reason='', at=NULL WHERE at >= :step",
            "DELETE FROM tasks WHERE id NOT IN (SELECT task FROM groups)",
        ):
            self._database.execute(statement, {"step": step})
        self._database.commit()

    def close(self) -> None:
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

    def waiting(self) -> list[Group]:
        """Groups that were kept and not yet trained, with all their tokens."""
        return [self.group(number) for (number,) in self._rows("SELECT number FROM groups WHERE fate='waiting'")]

    def task(self, id_: str) -> Task:
        source, level, messages, answer = self._rows(
            "SELECT source, level, messages, answer FROM tasks WHERE id=?", (id_,)
        )[0]
        return Task(tuple(_message(m) for m in json.loads(messages)), answer, source, level, id_)

    def group(self, number: int) -> Group:
        """A finished group as it was kept."""
        task_id, version = self._rows("SELECT task, version FROM groups WHERE number=?", (number,))[0]
        task = self.task(task_id)
        rows = self._rows(
            "SELECT id, outcome, origin, error, reward, rewards, turn_rewards, turns FROM attempts "
            "WHERE number=? AND fate IN ('waiting', 'trained') ORDER BY rowid",
            (number,),
        )
        return Group(number, task, [_trajectory(task, *row) for row in rows], version)

    def sample(self, step: int, count: int) -> list[Trajectory]:
        """Some attempts trained at `step`, for reading."""
        rows = self._rows(
            "SELECT g.task, a.id, a.outcome, a.origin, a.error, a.reward, a.rewards, a.turn_rewards, a.turns "
            "FROM trainings t JOIN attempts a ON a.id = t.attempt JOIN groups g ON g.number = a.number "
            "WHERE t.step = ? ORDER BY a.number, a.rowid LIMIT ?",
            (step, count),
        )
        return [_trajectory(self.task(row[0]), *row[1:]) for row in rows]

    def counts(self) -> dict[str, int]:
        """Attempts by fate."""
        return dict(self._rows("SELECT fate, COUNT(*) FROM attempts GROUP BY fate ORDER BY fate"))

    def violations(self) -> list[str]:
        """Broken promises: an attempt without exactly one fate, trained twice, or trained though failed."""
        checks = {
            "trained without a training": "SELECT COUNT(*) FROM attempts WHERE fate='trained' AND id NOT IN "
            "(SELECT attempt FROM trainings)",
            "training of an attempt not marked trained": "SELECT COUNT(*) FROM trainings t JOIN attempts a "
            "ON a.id = t.attempt WHERE a.fate != 'trained'",
            "failed attempt trained": "SELECT COUNT(*) FROM attempts WHERE fate='trained' AND outcome='failed'",
            "finished group without attempts": "SELECT COUNT(*) FROM groups WHERE fate != 'running' AND number NOT IN "
            "(SELECT number FROM attempts)",
            "attempt of a running group": "SELECT COUNT(*) FROM attempts a JOIN groups g ON g.number = a.number "
            "WHERE g.fate = 'running'",
            "number skipped": "SELECT COALESCE(MAX(number) + 1, 0) - COUNT(*) FROM groups",
        }
        found = {name: int(self._rows(query)[0][0]) for name, query in checks.items()}
        return [f"{name}: {count}" for name, count in found.items() if count]

    def trained_more_than_once(self) -> int:
        """Attempts in more than one optimizer step; 0 unless the buffer replays."""
        return int(
            self._rows("SELECT COUNT(*) FROM (SELECT attempt FROM trainings GROUP BY attempt HAVING COUNT(*) > 1)")[0][
                0
            ]
        )

    def digest(self) -> str:
        """A hash of every row: equal digests mean equal ledgers."""
        state = hashlib.sha256()
        for table, key in (("tasks", "id"), ("groups", "number"), ("attempts", "id"), ("trainings", "step, attempt")):
            for row in self._database.execute(f"SELECT * FROM {table} ORDER BY {key}"):
                state.update(repr((table, *row)).encode())
        return state.hexdigest()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._database.execute(statement, values)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(query, values).fetchall()


def _attempt_row(trajectory: Trajectory, number: int, is_kept: bool) -> tuple[Any, ...]:
    failed = trajectory.outcome is Outcome.FAILED
    return (
        trajectory.id,
        number,
        trajectory.outcome.value,
        trajectory.origin.value,
        None if failed else trajectory.reward,
        json.dumps(trajectory.rewards, sort_keys=True),
        trajectory.error,
        trajectory.num_tokens,
        "failed" if failed else ("waiting" if is_kept else "gated"),
        json.dumps(trajectory.turn_rewards),
        encode_turns(trajectory.turns),
    )


def _trajectory(
    task: Task,
    id_: str,
    outcome: str,
    origin: str,
    error: str,
    reward: float | None,
    rewards: str,
    turn_rewards: str,
    turns: bytes,
) -> Trajectory:
    return Trajectory(
        id_,
        task,
        decode_turns(turns),
        Outcome(outcome),
        Origin(origin),
        error,
        reward or 0.0,
        json.loads(rewards),
        tuple(json.loads(turn_rewards)),
    )


def encode_turns(turns: Sequence[Turn]) -> bytes:
    """Arrays as safetensors, the rest as JSON in front of them: nothing that could run code when read."""
    arrays: dict[str, Any] = {}
    heads = []
    for index, turn in enumerate(turns):
        for name in ("prompt", "tokens", "versions"):
            arrays[f"{index}.{name}"] = getattr(turn, name).astype(np.int32)
        arrays[f"{index}.logprobs"] = turn.logprobs.astype(np.float32)
        arrays |= {f"{index}.aux.{name}": np.ascontiguousarray(array) for name, array in turn.aux.items()}
        heads.append({"message": asdict(turn.message), "sampling": asdict(turn.sampling), "fresh": turn.fresh})
    head = json.dumps(heads).encode()
    return len(head).to_bytes(4, "little") + head + save(arrays)


def decode_turns(data: bytes) -> tuple[Turn, ...]:
    """The inverse of `encode_turns`."""
    size = int.from_bytes(data[:4], "little")
    heads, arrays = json.loads(data[4 : 4 + size]), load(data[4 + size :])
    turns = []
    for index, head in enumerate(heads):
        sampling = head["sampling"] | {"stop": tuple(head["sampling"]["stop"])}
        prefix = f"{index}.aux."
        turns.append(
            Turn(
                arrays[f"{index}.prompt"].astype(np.int64),
                arrays[f"{index}.tokens"].astype(np.int64),
                arrays[f"{index}.logprobs"],
                arrays[f"{index}.versions"].astype(np.int64),
                _message(head["message"]),
                Sampling(**sampling),
                head["fresh"],
                {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)},
            )
        )
    return tuple(turns)


def _message(data: dict[str, Any]) -> Message:
    return Message(data["role"], data["content"], tuple(ToolCall(**call) for call in data["tool_calls"]))
