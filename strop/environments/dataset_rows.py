"""Rows of a local Hugging Face dataset: a saved folder, or parquet, JSON or CSV files; nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError, DataError, nearest

_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}


def dataset_rows(path: Path, split: str) -> Iterator[tuple[str, Any]]:
    """Every row of a split with its place for errors, through the `datasets` package."""
    try:
        import datasets
    except ImportError:
        raise ConfigurationError("a dataset needs the datasets package: pip install 'strop[datasets]'") from None
    for number, row in enumerate(_table(datasets, path, split)):
        yield f"{path}, row {number}", row


def has_split(path: Path, split: str) -> bool:
    """Whether a dataset has this split beside others."""
    if not split or path.is_file():
        return False
    if (path / "dataset_dict.json").exists():
        return (path / split).is_dir()
    words = [re.split(r"[^a-zA-Z]+", file.stem) for file in _files(path, split)]  # or `latest` would be a test
    return not any(path.rglob("dataset_info.json")) and any(split in each for each in words)


def _files(path: Path, split: str) -> list[Path]:
    return sorted(file for file in path.rglob(f"*{split}*") if file.suffix in _FORMATS)


def _table(datasets: Any, path: Path, split: str) -> Any:
    if path.is_file():
        return _of_files(datasets, [path], path)
    if any(path.rglob("dataset_info.json")) or (path / "dataset_dict.json").exists():
        return _saved(datasets, path, split)
    return _of_files(datasets, _files(path, split), path)


def _saved(datasets: Any, path: Path, split: str) -> Any:
    """What `save_to_disk` wrote."""
    saved = datasets.load_from_disk(str(path))
    if not isinstance(saved, datasets.DatasetDict):
        return saved
    if split not in saved:
        raise DataError(f"{path} has no split {split!r}; {nearest(split, saved)}")
    return saved[split]


def _of_files(datasets: Any, files: list[Path], path: Path) -> Any:
    formats = {_FORMATS.get(file.suffix) for file in files}
    if len(formats) != 1 or None in formats:
        found = ", ".join(file.name for file in files) or "none"
        raise DataError(f"{path}: need files of one format out of {', '.join(_FORMATS)}, found {found}")
    return datasets.load_dataset(formats.pop(), data_files=[str(file) for file in files], split="train")
