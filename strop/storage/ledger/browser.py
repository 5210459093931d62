"""Paged queries of the ledger: filtered and sorted rollouts, and groups in the order in which they settled.

Pages start behind a cursor, so that rows written meanwhile move no page, and nothing is read twice. Queries over all
rollouts use the covering index `rollouts_by_group`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from strop.storage.ledger.rows import task_of, turns_of
from strop.storage.ledger.schema import EVIDENCE, FATES
from strop.storage.ledger.untrusted_ledger import opened

ORDERS = {"newest": "number", "reward": "reward", "length": "tokens"}  # what pages are sorted by, and its column
_LETTERS = 160  # of a task and of a completion that a list shows
_OF_ALL = "rollouts a INDEXED BY rollouts_by_group"
# by groups: rollouts of other kinds are never looked at, and a group is asked for its task once
_OF_KIND = f"groups g CROSS JOIN {_OF_ALL} ON a.number = g.number"


class Between(NamedTuple):
    """Closed interval of numbers; None is unbounded."""

    low: float | None = None
    high: float | None = None


ANY = Between()


@dataclass(frozen=True)
class Wanted:
    """Filter of rollouts; empty fields do not filter."""

    task: str = ""  # its id
    kind: tuple[str, int] | None = None  # source and level of tasks
    fate: str = ""
    origin: str = ""
    outcome: str = ""
    reward: Between = ANY
    length: Between = ANY
    version: Between = ANY  # of the weights when the group was admitted


class RowPlace(NamedTuple):
    """Cursor: sort key of a rollout, and its row."""

    key: float
    row: int


class Listed(NamedTuple):
    """Rollout in a list."""

    place: RowPlace
    id: str
    number: int  # of its group
    version: int
    task: str
    source: str
    level: int
    fate: str
    outcome: str
    origin: str
    reward: float | None
    tokens: int
    asked: str  # the beginning of its task
    completion: str  # its end


class GroupTried(NamedTuple):
    """Group with the results of its own rollouts."""

    number: int
    source: str
    level: int
    version: int
    fate: str
    right: float
    tried: float
    rollouts: int


class LedgerBrowser:
    """Read-only connection to a ledger; use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._database = opened(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._database.close()

    def newest(self) -> int:
        """The last row: whoever knew another one has something to look at."""
        return int(self._rows("SELECT COALESCE(MAX(rowid), 0) FROM rollouts")[0][0])

    def kinds(self, after: int) -> tuple[list[tuple[str, int]], int]:
        """Sources and levels of tasks behind a row, and the last row."""
        found = self._rows("SELECT DISTINCT source, level FROM tasks WHERE rowid > ?", (after,))
        ((last,),) = self._rows("SELECT COALESCE(MAX(rowid), 0) FROM tasks")
        return found, int(last)

    def page(self, wanted: Wanted, order: str, is_rising: bool, after: RowPlace | None, count: int) -> list[Listed]:
        """The next rollouts behind a place; those without a reward have no place in the order of rewards."""
        column, way = ORDERS[order], ("ASC", ">") if is_rising else ("DESC", "<")
        asked = [*self._asked(wanted), *([("a.reward IS NOT NULL", [])] if column == "reward" else [])]
        asked += [(f"(a.{column}, a.rowid) {way[1]} (?, ?)", list(after))] if after else []
        where = " AND ".join(part for part, _ in asked) or "1"
        values = [value for _, each in asked for value in each]
        sorted_by = f"{'g' if wanted.kind and column == 'number' else 'a'}.{column}"
        found = self._rows(
            f"SELECT a.{column}, a.rowid FROM {_OF_KIND if wanted.kind else _OF_ALL} WHERE {where} "
            f"ORDER BY {sorted_by} {way[0]}, a.rowid {way[0]} LIMIT ?",
            (*values, count),
        )
        return list(self._listed([RowPlace(*each) for each in found]))

    def _asked(self, wanted: Wanted) -> Iterator[tuple[str, list[Any]]]:
        for name in ("task", "fate", "origin", "outcome"):
            if value := vars(wanted)[name]:
                yield f"a.{name} = ?", [value]
        if wanted.kind:
            yield "g.task IN (SELECT id FROM tasks WHERE source = ? AND level = ?)", list(wanted.kind)
        for column, span in (("reward", wanted.reward), ("tokens", wanted.length), ("number", self._numbers(wanted))):
            for sign, end in ((">=", span.low), ("<=", span.high)):
                if end is not None:
                    yield f"a.{column} {sign} ?", [end]

    def _numbers(self, wanted: Wanted) -> Between:
        """Of the groups of some versions: a later group has never an earlier version."""
        low, high = wanted.version
        first = "SELECT COALESCE(MIN(number), 9e18) FROM groups WHERE version >= ?"
        last = "SELECT COALESCE(MAX(number), -1) FROM groups WHERE version <= ?"
        return Between(
            None if low is None else self._rows(first, (low,))[0][0],
            None if high is None else self._rows(last, (high,))[0][0],
        )

    def _listed(self, places: Sequence[RowPlace]) -> Iterator[Listed]:
        query = (
            "SELECT a.id, a.number, g.version, a.task, t.source, t.level, a.fate, a.outcome, a.origin, a.reward, "
            "a.tokens, t.messages, a.turns FROM rollouts a JOIN groups g ON g.number = a.number "
            "JOIN tasks t ON t.id = a.task WHERE a.rowid = ?"
        )
        for place in places:
            for *plain, messages, turns in self._rows(query, (place.row,)):
                yield Listed(place, *[*plain, _asked_of(plain[3], messages), _completion_of(plain[0], turns)])

    def named(self, ids: Sequence[str]) -> list[Listed]:
        """Rollouts by id, in the order in which they were written."""
        asked = f"SELECT number, rowid FROM rollouts WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY rowid"
        return list(self._listed([RowPlace(*each) for each in self._rows(asked, ids)]))

    def number_of(self, rollout: str) -> int | None:
        """The group of a rollout."""
        found = self._rows("SELECT number FROM rollouts WHERE id = ?", (rollout,))
        return int(found[0][0]) if found else None

    def fates(self, number: int) -> dict[str, str]:
        """Of a group's rollouts by id; "": why the group was left out."""
        return dict(self._rows(FATES, (number,)))

    def tried(self, after: int, count: int) -> list[GroupTried]:
        """The next groups behind a number."""
        return self._tried("g.number > ?1 ORDER BY g.number LIMIT ?2", (after, count))

    def tried_again(self, numbers: Sequence[int]) -> list[GroupTried]:
        """Groups as they stand now."""
        return [found for number in numbers for found in self._tried("g.number = ?", (number,))]

    def _tried(self, chosen: str, values: Sequence[int]) -> list[GroupTried]:
        rows = self._rows(
            f"SELECT g.number, t.source, t.level, g.version, g.fate, {EVIDENCE} "
            f"FROM (SELECT * FROM groups g WHERE {chosen}) g JOIN tasks t ON t.id = g.task "
            "LEFT JOIN rollouts a ON a.number = g.number GROUP BY g.number ORDER BY g.number",
            values,
        )
        return [GroupTried(*row[:8]) for row in rows]

    def trained_after(self, step: int) -> list[tuple[int, int]]:
        """Steps behind one that were trained since, and the groups in them."""
        return self._rows("SELECT DISTINCT step, number FROM trainings WHERE step > ? ORDER BY step", (step,))

    def last_number(self) -> int:
        return int(self._rows("SELECT COALESCE(MAX(number), -1) FROM groups")[0][0])

    def earned(self, groups: int) -> dict[str, float]:
        """The mean reward of the policy's own rollouts by task, over so many of the last groups."""
        query = (
            "SELECT task, AVG(reward) FROM rollouts INDEXED BY rollouts_by_group WHERE number > ? "
            "AND origin = 'policy' AND reward IS NOT NULL GROUP BY task"
        )
        return dict(self._rows(query, (self.last_number() - groups,)))

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.execute(query, values).fetchall()


def _asked_of(task: str, messages: str) -> str:
    said = [each.content for each in task_of(task, ("", 0, messages, "", "[]", "")).messages if each.role == "user"]
    return said[0][:_LETTERS] if said else ""


def _completion_of(rollout: str, turns: bytes) -> str:
    found = turns_of(rollout, turns)
    return found[-1].message.content[-_LETTERS:] if found else ""
