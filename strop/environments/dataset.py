"""Tasks from a local Hugging Face dataset: a saved folder, or parquet, JSON or CSV files; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.fixed import FixedTasks
from strop.environments.scratchpad import final_answer
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError, DataError, nearest
from strop.roles import World
from strop.types import Message, Task

_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}


@dataclass(frozen=True)
class Dataset(World):
    """One task per row, right when the reply's final answer is the row's; `prompt` and `answer` name columns."""

    path: str
    prompt: str = "question"
    answer: str = "answer"
    split: str = "train"
    heldout_share: float = 0.1

    is_inline: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def level(self) -> int:
        return 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return self._tasks.task(index, heldout)

    def num_tasks(self, heldout: bool = False) -> int:
        return self._tasks.num_tasks(heldout)

    def environment(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, reply: str) -> float:
        return float(final_answer(reply) == task.answer.strip())

    def solution(self, task: Task) -> str:
        return task.answer

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # rows are read again where needed

    @cached_property
    def _tasks(self) -> FixedTasks:
        rows = _rows(Path(self.path), self.split)
        for column in (self.prompt, self.answer):
            if column not in rows.column_names:
                raise DataError(f"{self.path} has no column {column!r}; {nearest(column, rows.column_names)}")
        return FixedTasks.split(list(self._read(rows)), self.heldout_share, self.path)

    def _read(self, rows: Iterable[dict[str, Any]]) -> Iterable[Task]:
        for number, row in enumerate(rows):
            prompt, answer = row[self.prompt], row[self.answer]
            if prompt is None or answer is None:
                empty = self.prompt if prompt is None else self.answer
                raise DataError(f"{self.path}, row {number}: column {empty!r} is empty")
            yield Task((Message("user", str(prompt)),), str(answer), self.name)


def _rows(path: Path, split: str) -> Any:
    """The rows of a split, through the `datasets` package."""
    try:
        import datasets
    except ImportError:
        raise ConfigurationError("Dataset needs the datasets package: pip install 'strop[datasets]'") from None
    if not path.exists():
        raise DataError(f"{path} does not exist; need a local dataset folder or a {', '.join(_FORMATS)} file")
    if path.is_file():
        return _of_files(datasets, [path], path)
    if any(path.rglob("dataset_info.json")) or (path / "dataset_dict.json").exists():
        return _saved(datasets, path, split)
    return _of_files(datasets, sorted(file for file in path.rglob(f"*{split}*") if file.suffix in _FORMATS), path)


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
