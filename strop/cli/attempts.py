"""`strop attempts`: every attempt of a run as a row of JSON or parquet, conversations as messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError
from strop.observe.report.transcripts import Reader, contexts
from strop.observe.run_files.run_info import read_facts
from strop.storage.ledger import Ledger
from strop.storage.ledger_browser import LedgerBrowser
from strop.storage.run_folder import RunFolder
from strop.types import Group, Trajectory

_BATCH = 1024  # rows of a parquet file that are in memory at a time
_NUMBERS = {"group": "int64", "version": "int64", "level": "int64", "tokens": "int64", "reward": "float64"}
_TEXTS = ("id", "task", "source", "answer", "messages", "other_contexts", "rewards", "fate", "outcome", "origin")
_COLUMNS = dict.fromkeys((*_TEXTS, "error", "parent"), "string") | _NUMBERS


def write_attempts(path: Path, out: Path) -> None:
    """One row per attempt; the file's name says which kind."""
    folder = RunFolder(path)
    folder.require_ledger()
    if out.suffix not in (".jsonl", ".parquet"):
        raise ConfigurationError(f"--out ends in .jsonl or .parquet, got {out}")
    if out.exists():
        raise ConfigurationError(f"{out} exists: name another --out, or remove it")
    reader = Reader.of_run(folder, read_facts(folder).model)
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        with LedgerBrowser(folder.ledger) as browser:
            write = _json if out.suffix == ".jsonl" else _parquet
            count = write(rows_of(ledger, browser, reader), out)
    finally:
        ledger.close()
    print(f"{count:,} attempts → {out}")


def rows_of(ledger: Ledger, browser: LedgerBrowser, reader: Reader) -> Iterator[dict[str, Any]]:
    """Attempts in the order of their groups; one that the world failed has no reward."""
    for group in ledger.history():
        fates = browser.fates(group.number)
        for attempt in group.trajectories:
            yield row_of(group, attempt, fates[attempt.id], reader)


def row_of(group: Group, attempt: Trajectory, fate: str, reader: Reader) -> dict[str, Any]:
    """What is known of an attempt; `messages` are those of its main context."""
    read = contexts(attempt, reader)
    said = [(each.name, [{"role": line.role, "content": line.text} for line in each.said]) for each in read]
    return {
        "id": attempt.id,
        "group": group.number,
        "version": group.version,
        "task": attempt.task.id,
        "source": attempt.task.source,
        "level": attempt.task.level,
        "answer": attempt.task.answer,
        "messages": said[-1][1] if said else [],
        "other_contexts": [{"name": name, "messages": messages} for name, messages in said[:-1]],
        "reward": attempt.reward if attempt.is_scored else None,
        "rewards": dict(attempt.rewards),
        "fate": fate,
        "outcome": attempt.outcome.value,
        "origin": attempt.origin.value,
        "error": attempt.error,
        "parent": attempt.parent,
        "tokens": attempt.num_tokens,
    }


def _json(rows: Iterator[dict[str, Any]], out: Path) -> int:
    count = 0
    with out.open("w") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _parquet(rows: Iterator[dict[str, Any]], out: Path) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigurationError(
            "parquet needs pyarrow (pip install 'strop[datasets]'); a .jsonl file does not"
        ) from None
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in _COLUMNS.items()])
    count = 0
    with parquet.ParquetWriter(out, schema) as file:
        while told := [_flat(row) for row in islice(rows, _BATCH)]:
            file.write_table(pyarrow.Table.from_pylist(told, schema))
            count += len(told)
    return count


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Nested fields as JSON text: which rewards there are differs between rows."""
    return row | {name: json.dumps(row[name], ensure_ascii=False) for name in ("messages", "other_contexts", "rewards")}
