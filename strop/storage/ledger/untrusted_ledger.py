"""Read-only access to an untrusted ledger: tables and the form of every row are checked.

SQLite keeps any value in any column, and a database can hold triggers and views that run when it is queried. The text
of the tables is compared with the schema; rows are checked once for each state of the file, and one with a form that
the ledger does not write is reported with its column. In a read-only folder nothing is written.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import quote

from strop.errors import CheckpointError
from strop.storage.ledger.schema import SCHEMA
from strop.storage.run_folder import FORMAT
from strop.types import Origin, Outcome

LONGEST = 1 << 28  # bytes of a value
_LARGEST = 1 << 40  # of numbers that count something
_JSON = {"messages": "array", "tools": "array", "rewards": "object", "facts": "object", "turn_rewards": "array"}
_NUMBERS = ("rewards", "facts", "turn_rewards")  # whose values are numbers
_COUNTS = ("number", "version", "at", "tokens", "step", "slot", "place")
_WORDS = {"outcome": tuple(each.value for each in Outcome), "origin": tuple(each.value for each in Origin)}
_BEHIND = ("place",)  # of rollouts: stands behind the turns, which would all be read to look at it


def opened(path: Path) -> sqlite3.Connection:
    """The ledger, if it is one; OperationalError where it cannot be opened now."""
    database = _connected(path)
    try:
        for setting in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
            database.execute(f"PRAGMA {setting}")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        if check_tables(database, path):
            _check_rows_once(path, _state(path), database)
    except BaseException as error:
        database.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            raise CheckpointError(f"{path} is no ledger of strop: {error}") from error
        raise
    return database


def check_tables(database: sqlite3.Connection, path: Path) -> bool:
    """Whether there are any; others than a ledger's are refused."""
    ((found,),) = database.execute("PRAGMA user_version").fetchall()
    tables = set(database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    if not tables:
        return False
    if found != FORMAT:
        raise CheckpointError(f"{path} was made by another version of strop (format {found}, need {FORMAT})")
    if wrong := sorted(f"{kind} {name}" for kind, name, *_ in tables ^ _ours()):
        raise CheckpointError(f"{path} is no ledger of strop: it has other tables ({', '.join(wrong[:5])})")
    return True


@cache
def _ours() -> frozenset[tuple[str, str, str, str]]:
    with sqlite3.connect(":memory:") as database:
        database.executescript(SCHEMA)
        found = frozenset(database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    database.close()
    return found


def _connected(path: Path) -> sqlite3.Connection:
    """Without writing; a folder in which SQLite could not keep its notes for readers is read as it stands."""
    plain = f"file:{quote(str(path))}"
    if os.access(path.parent, os.W_OK):
        return sqlite3.connect(f"{plain}?mode=ro", uri=True)
    log = path.with_name(f"{path.name}-wal")
    if log.is_file() and log.stat().st_size:
        return _copied(path, log)
    return sqlite3.connect(f"{plain}?mode=ro&immutable=1", uri=True)


def _copied(path: Path, log: Path) -> sqlite3.Connection:
    """A copy with what stands in the log; it has no name, and ends with the connection."""
    with tempfile.TemporaryDirectory(prefix="strop-ledger-") as place:
        copy = Path(shutil.copyfile(path, Path(place) / path.name))
        shutil.copyfile(log, copy.with_name(log.name))
        with sqlite3.connect(copy) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            database.execute("PRAGMA journal_mode=DELETE")
        database.close()
        found = sqlite3.connect(f"file:{quote(str(copy))}?mode=ro&immutable=1", uri=True)
        found.execute("SELECT 1 FROM sqlite_master").fetchall()  # it is opened when it is first asked
    return found


def _state(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _check_rows_once(path: Path, state: tuple[int, ...], database: sqlite3.Connection) -> None:
    """For each state of the file; a page of many questions opens it as often."""
    if state not in _known():
        _check_rows(database, path)
        _known().add(state)


@cache
def _known() -> set[tuple[int, ...]]:
    return set()


def _check_rows(database: sqlite3.Connection, path: Path) -> None:
    """Raise on the first row that the ledger would not have written."""
    for table, conditions in _conditions().items():
        wrong = " ".join(f"WHEN NOT ({right}) THEN '{column}'" for column, right in conditions.items())
        found = database.execute(
            f"SELECT rowid, CASE {wrong} END AS wrong FROM {table} WHERE wrong IS NOT NULL LIMIT 1"
        ).fetchall()
        for row, column in found:
            raise CheckpointError(f"{path} cannot be read: row {row} of {table} has no {column} that a ledger writes")
    for table, row, parent, _ in database.execute("PRAGMA foreign_key_check").fetchall()[:1]:
        raise CheckpointError(f"{path} cannot be read: row {row} of {table} speaks of {parent} that are not there")


@cache
def _conditions() -> dict[str, dict[str, str]]:
    """What holds of each column, by table; as the schema says, which SQLite itself does not keep to."""
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    found = {
        table: {
            name: _condition(name, kind, bool(needed) or is_key > 0)
            for _, name, kind, needed, _, is_key in database.execute(f"PRAGMA table_info({table})")
            if not (table == "rollouts" and name in _BEHIND)
        }
        for table in tables
    }
    database.close()
    return found


def _condition(name: str, kind: str, is_needed: bool) -> str:
    kinds = {"REAL": "('real', 'integer')"}.get(kind, f"('{kind.lower()}')")
    right = f"typeof({name}) IN {kinds}"
    if name in _JSON:
        right += f" AND json_valid({name}) AND json_type({name}) = '{_JSON[name]}'"
    if name in _NUMBERS:
        right += f" AND NOT EXISTS (SELECT 1 FROM json_each({name}) WHERE type NOT IN ('integer', 'real'))"
    if name in _COUNTS:
        right += f" AND {name} BETWEEN 0 AND {_LARGEST}"
    if name in _WORDS:
        right += f" AND {name} IN {_WORDS[name]}"
    return right if is_needed else f"{name} IS NULL OR ({right})"
