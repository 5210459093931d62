"""Command `strop rollouts`: every rollout of a run as a row: messages, or tokens as other libraries have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError
from strop.observe.report.transcripts import Reader, contexts
from strop.observe.run_files.run_info import read_facts
from strop.storage.ledger.browser import LedgerBrowser
from strop.storage.ledger.ledger import Ledger
from strop.storage.portable import groups_of
from strop.storage.portable import rows_of as portable_rows
from strop.storage.run_folder import RunFolder
from strop.types import Group, Rollout

_BATCH = 1024  # rows of a parquet file that are in memory at a time
_NUMBERS = {"group": "int64", "version": "int64", "level": "int64", "tokens": "int64", "reward": "float64"}
_TEXTS = ("id", "task", "source", "answer", "messages", "other_contexts", "rewards", "fate", "outcome", "origin")
_COLUMNS = dict.fromkeys((*_TEXTS, "error", "parent"), "string") | _NUMBERS


def write_rollouts(path: Path, out: Path) -> None:
    """Write one row per rollout; the file's suffix selects the format."""
    folder = RunFolder(path)
    folder.require_ledger()
    if out.suffix not in (".jsonl", ".parquet"):
        raise ConfigurationError(f"--out must end in .jsonl or .parquet, got {out}")
    if out.exists():
        raise ConfigurationError(f"{out} exists: choose another --out, or remove it")
    reader = Reader.of_run(folder, read_facts(folder).model)
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        with LedgerBrowser(folder.ledger) as browser:
            write = _json if out.suffix == ".jsonl" else _parquet
            count = write(rows_of(ledger, browser, reader), out)
    finally:
        ledger.close()
    print(f"{count:,} rollouts → {out}")


def write_portable(path: Path, out: Path, library: str) -> None:
    """Write rollouts of a run, or of a file of such rows, as another library has them."""
    if out.suffix != ".jsonl" or out.exists():
        raise ConfigurationError(f"--out must be a new file that ends in .jsonl, got {out}")
    if path.is_file():
        print(f"{_json(portable_rows(groups_of(path), library), out):,} rows → {out}")
        return
    folder = RunFolder(path)
    folder.require_ledger()
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        print(f"{_json(portable_rows(ledger.history(), library), out):,} rows → {out}")
    finally:
        ledger.close()


def rows_of(ledger: Ledger, browser: LedgerBrowser, reader: Reader) -> Iterator[dict[str, Any]]:
    """Rows in the order of groups; a rollout whose environment failed has no reward."""
    for group in ledger.history():
        fates = browser.fates(group.number)
        for rollout in group.rollouts:
            yield row_of(group, rollout, fates[rollout.id], reader)


def row_of(group: Group, rollout: Rollout, fate: str, reader: Reader) -> dict[str, Any]:
    """One rollout as a row; `messages` are those of its main context."""
    read = contexts(rollout, reader)
    said = [(each.name, [{"role": line.role, "content": line.text} for line in each.said]) for each in read]
    return {
        "id": rollout.id,
        "group": group.number,
        "version": group.version,
        "task": rollout.task.id,
        "source": rollout.task.source,
        "level": rollout.task.level,
        "answer": rollout.task.answer,
        "messages": said[-1][1] if said else [],
        "other_contexts": [{"name": name, "messages": messages} for name, messages in said[:-1]],
        "reward": rollout.reward if rollout.is_scored else None,
        "rewards": dict(rollout.rewards),
        "fate": fate,
        "outcome": rollout.outcome.value,
        "origin": rollout.origin.value,
        "error": rollout.error,
        "parent": rollout.parent,
        "tokens": rollout.num_tokens,
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
        while batch := [_flat(row) for row in islice(rows, _BATCH)]:
            file.write_table(pyarrow.Table.from_pylist(batch, schema))
            count += len(batch)
    return count


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Row with nested fields as JSON text, because reward names differ between rows."""
    return row | {name: json.dumps(row[name], ensure_ascii=False) for name in ("messages", "other_contexts", "rewards")}
