"""Rows of JSON files and of Hugging Face datasets on disk."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError, DataError, nearest

# Rows of a JSON file: one object per line, or one array of objects.


def json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every row with its place for errors; the first line that is no JSON is named."""
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")  # byte order mark of some editors
    if content.lstrip().startswith(b"[") and path.suffix == ".json":
        yield from _array(path, content)
        return
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            if line.strip():
                yield f"{path}:{number}", json.loads(line.decode("utf-8"))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None


def _array(path: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    try:
        rows = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    for number, row in enumerate(rows):
        yield f"{path}, row {number}", row


# Rows of a Hugging Face dataset on disk: a saved folder, or parquet, JSON or CSV files; nothing is downloaded here.

FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}
_JSON = (".json", ".jsonl")
_ROWS = 1024  # of a file that are in memory at a time
_NOTES = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")  # about rows, and no rows
_OTHER_SPLITS = {"test", "validation", "valid", "val", "dev", "eval"}  # files that name none are for training
_SNAPSHOT = "datasets--"  # before owner--name, in the cache of the hub


def dataset_rows(path: Path, split: str) -> Iterator[tuple[str, Any]]:
    """Every row of a split with its place for errors."""
    if path.is_dir() and (any(path.rglob("dataset_info.json")) or (path / "dataset_dict.json").exists()):
        for number, row in enumerate(_saved(path, split)):
            yield f"{path}, row {number}", row
        return
    for file in _of_one_format([path] if path.is_file() else _files(path, split), path):
        yield from json_rows(file) if file.suffix in _JSON else _batched_rows(file)


def has_split(path: Path, split: str) -> bool:
    """Whether a dataset has this split beside others."""
    if not split or path.is_file():
        return False
    if (path / "dataset_dict.json").exists():
        return (path / split).is_dir()
    words = [_words(file.relative_to(path)) for file in _files(path, split)]  # or `latest` would be a test
    return not any(path.rglob("dataset_info.json")) and any(split in each for each in words)


def tables_in(folder: Path) -> list[str]:
    """Names of the tables among a dataset's files: their folders, and an empty one where they lie side by side."""
    splits = {"data", "train", *_OTHER_SPLITS}
    places = [file.relative_to(folder).parts[:-1] for file in _data(folder)]
    return sorted({next((name for name in place if name not in splits), "") for place in places})


def title_of(path: Path) -> str:
    """The name of a file, of a folder, or of a dataset on the hub, whose folder is called by its revision."""
    home = next((part for part in path.parts if part.startswith(_SNAPSHOT)), "")
    return home.rpartition("--")[-1] or path.stem


def _data(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in FORMATS and file.name not in _NOTES)


def _files(path: Path, split: str) -> list[Path]:
    """Those whose name, or a folder they lie in, says the split."""
    data = _data(path)
    named = [file for file in data if split in file.name or split in file.relative_to(path).parts]
    unnamed = [file for file in data if not _OTHER_SPLITS & set(_words(file.relative_to(path)))]
    return named or (unnamed if split == "train" else [])


def _words(place: Path) -> list[str]:
    return re.split(r"[^a-zA-Z]+", str(place.with_suffix("")))


def _saved(path: Path, split: str) -> Any:
    """What `save_to_disk` wrote."""
    try:
        import datasets
    except ImportError:
        raise ConfigurationError("a saved dataset needs the datasets package: pip install 'strop[datasets]'") from None
    saved = datasets.load_from_disk(str(path))
    if not isinstance(saved, datasets.DatasetDict):
        return saved
    if split not in saved:
        raise DataError(f"{path} has no split {split!r}; {nearest(split, saved)}")
    return saved[split]


def _of_one_format(files: list[Path], path: Path) -> list[Path]:
    formats = {FORMATS.get(file.suffix) for file in files}
    if len(formats) != 1 or None in formats:
        found = ", ".join(file.name for file in files) or "none"
        raise DataError(f"{path}: need files of one format out of {', '.join(FORMATS)}, found {found}")
    return files


def _batched_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Of a parquet or CSV file, which is never in memory as a whole."""
    try:
        import pyarrow
    except ImportError:
        if file.suffix == ".csv":
            yield from _csv_rows(file)
            return
        raise ConfigurationError(
            f"{file} needs pyarrow: pip install 'strop[datasets]'; a .jsonl or .csv file does not"
        ) from None
    try:
        rows = (row for batch in _batches(file) for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield f"{file}, row {number}", row
    except pyarrow.ArrowException as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def _csv_rows(file: Path) -> Iterator[tuple[str, Any]]:
    """Of a CSV file where pyarrow is not installed; a column is of numbers where every cell is one."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = list(csv.DictReader(lines, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
    for number, row in enumerate(rows):
        if None in row or None in row.values():
            raise DataError(
                f"{file}, row {number}: it has {'more' if None in row else 'fewer'} cells than the first line"
            )
    kinds = {name: _kind([row[name] for row in rows]) for name in (rows[0] if rows else {})}
    for number, row in enumerate(rows):
        yield f"{file}, row {number}", {name: kinds[name](cell) if cell else None for name, cell in row.items()}


def _kind(cells: Sequence[str]) -> Callable[[str], Any]:
    """Whole numbers, numbers or text: the first that every cell which is not empty can be read as."""
    for kind in (int, float):
        with suppress(ValueError):
            for cell in filter(None, cells):
                kind(cell)
            return kind
    return str


def _batches(file: Path) -> Any:
    if file.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.ParquetFile(file).iter_batches(_ROWS)
    from pyarrow import csv as tables

    return tables.open_csv(file, convert_options=tables.ConvertOptions(strings_can_be_null=True))
