"""Logistic pass-rate estimator: a level per kind of task (environment and level) plus an offset per task.

logit p = level of the kind + offset of the task. Decayed counts would drag a task's estimate down while its kind
improves; with an offset it rises along. A level takes one Newton step on what was observed since the last version: with
k of n right, n p(1 - p) is the information and k - n p the gradient. An offset moves to the maximum a posteriori under
a normal prior around its previous value and a weak pull towards 0. Evidence and precision decay with weight versions,
never with the number of observations, until a task's estimate is again that of its kind.

Observations are queued and count from the next version on, in the order of version and number: within a version nothing
depends on timing, and late observations count less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from strop.control.estimators.support.calibration import prediction
from strop.control.estimators.support.task_table import Keys, TaskTable, keys_of
from strop.control.seeded_choice import Doubles
from strop.errors import CheckpointError, ConfigurationError
from strop.roles import PassRateEstimator
from strop.success import kind, successes
from strop.types import FloatArray, Group, Metrics, Task

_TASK = np.dtype([("key", "u8"), ("logit", "f4"), ("known", "f4"), ("version", "i4")])  # 20 bytes
_KIND = np.dtype([("key", "u8"), ("logit", "f8"), ("known", "f8"), ("version", "i4")])
_PRIOR = 1.0  # information of a forecast before anything was seen, and of a level
_PULL = 0.02  # towards offset 0; so weak because some tasks can never be solved
_STRIDE = 1.0  # most that a level moves in a version
_NEWTON = 8  # steps to an offset's likeliest value, each of 2 at most
_FURTHEST = 8.0  # most that an offset is
_FILES = ("tasks.npy", "kinds.npy")


class _Seen(NamedTuple):
    """Observed outcome of a group."""

    version: int
    number: int
    task: int  # key
    kind: int  # key
    right: float
    tried: float


@dataclass
class Offsets(PassRateEstimator):
    """Level per kind, and offset per tried task; an untried task has its kind's estimate.

    Mean: of the logistic of a normal distribution with the accumulated precision; variance: by the delta method.
    """

    kind_memory: float = 0.9  # what is left of knowledge of a kind's level after one version
    task_memory: float = 0.995  # of a task's offset

    _tasks: TaskTable = field(default_factory=lambda: TaskTable(_TASK), init=False, repr=False, compare=False)
    _kinds: TaskTable = field(default_factory=lambda: TaskTable(_KIND), init=False, repr=False, compare=False)
    _filed: list[_Seen] = field(default_factory=list, init=False, repr=False, compare=False)
    _step: int = field(default=0, init=False, repr=False, compare=False)  # the last one that evidence was folded at

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (0 < self.kind_memory <= 1 and 0 < self.task_memory <= 1):
            raise ConfigurationError(
                f"Offsets needs memories above 0 and at most 1, got {self.kind_memory} and {self.task_memory}"
            )

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]:
        return self.told(keys_of([task.id for task in tasks]), keys_of([kind(task) for task in tasks]), step)

    def told(self, tasks: Keys, kinds: Keys, step: int) -> tuple[FloatArray, FloatArray]:
        """The same for whoever has the keys of tasks and of their kinds, and need not make the tasks: [N] each."""
        if step > self._step:
            self._fold(step)
        offset, level = self._tasks.read(tasks), self._kinds.read(kinds)
        logit = level["logit"] + offset["logit"]
        known = _known(offset, step, self.task_memory), _known(level, step, self.kind_memory)
        spread = 1 / (_PRIOR + known[0]) + 1 / (_PRIOR + known[1])
        mean = _logistic(logit / np.sqrt(1 + np.pi * spread / 8))
        return mean.astype(np.float32), (np.square(mean * (1 - mean)) * spread).astype(np.float32)

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        if count:
            task, like = keys_of([group.task.id, kind(group.task)]).tolist()
            self._filed.append(_Seen(group.version, group.number, task, like, right, count))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how well the batch was predicted, and how many tasks are known."""
        return prediction(groups) | {"tasks_known": float(self._tasks.count)}

    # ---- memory

    def state(self) -> dict[str, Any]:
        return {"step": self._step, "filed": [list(seen) for seen in self._filed]}

    def restore(self, state: dict[str, Any]) -> None:
        self._step = int(state["step"])
        self._filed = [_Seen(*map(int, row[:4]), *map(float, row[4:])) for row in state["filed"]]

    def save(self, folder: Path) -> None:
        for name, table in zip(_FILES, (self._tasks, self._kinds), strict=True):
            np.save(folder / name, table.rows(), allow_pickle=False)

    def resume(self, folder: Path) -> None:
        tasks, kinds = (_rows(folder / name, row) for name, row in zip(_FILES, (_TASK, _KIND), strict=True))
        self._tasks, self._kinds = TaskTable.of(tasks), TaskTable.of(kinds)

    # ---- learning

    def _fold(self, step: int) -> None:
        """Take in what was filed: kinds first, so that an offset explains only what its kind does not."""
        filed, self._filed, self._step = sorted(self._filed), [], step
        if not filed:
            return
        tasks, kinds = (np.array([seen[place] for seen in filed], np.uint64) for place in (2, 3))
        versions, right, count = (np.array([seen[place] for seen in filed], np.float64) for place in (0, 4, 5))
        ages = np.maximum(step - versions, 0)
        self._move_levels(kinds, tasks, self.kind_memory**ages, right, count)
        self._move_offsets(kinds, tasks, self.task_memory**ages, right, count)

    def _move_levels(self, kinds: Keys, tasks: Keys, weight: Doubles, right: Doubles, count: Doubles) -> None:
        probability = _logistic(self._kinds.read(kinds)["logit"] + self._tasks.read(tasks)["logit"])  # [E]
        unique, places = np.unique(kinds, return_inverse=True)
        row = self._kinds.read(unique)
        information = np.bincount(places, weight * count * probability * (1 - probability))
        known = _known(row, self._step, self.kind_memory) + information
        stride = np.bincount(places, weight * (right - count * probability)) / (_PRIOR + known)
        logit = row["logit"] + np.clip(stride, -_STRIDE, _STRIDE)
        self._kinds.write(unique, logit=logit, known=known, version=self._step)

    def _move_offsets(self, kinds: Keys, tasks: Keys, weight: Doubles, right: Doubles, count: Doubles) -> None:
        unique, first, places = np.unique(tasks, return_index=True, return_inverse=True)
        right, count = (np.bincount(places, weight * each).astype(np.float64) for each in (right, count))
        row, level = self._tasks.read(unique), self._kinds.read(kinds[first])["logit"]
        known, before = _known(row, self._step, self.task_memory), row["logit"].astype(np.float64)
        offset, information = before, np.zeros(len(unique))
        for _ in range(_NEWTON):
            probability = _logistic(level + offset)
            information = count * probability * (1 - probability)
            slope = right - count * probability - known * (offset - before) - _PULL * offset
            stride = np.clip(slope / (information + known + _PULL), -2, 2)
            offset = np.clip(offset + stride, -_FURTHEST, _FURTHEST)
        self._tasks.write(unique, logit=offset, known=known + information, version=self._step)


def _known(row: dict[str, NDArray[Any]], step: int, memory: float) -> Doubles:
    """Information that is left at a step: it fades with every version."""
    return np.asarray(row["known"] * memory ** np.maximum(step - row["version"], 0), np.float64)


def _logistic(logit: Doubles) -> Doubles:
    return np.asarray(1 / (1 + np.exp(-logit)), np.float64)


def _rows(path: Path, row: np.dtype[Any]) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"cannot read what is known of tasks in {path}: {error}") from error
    if found.dtype != row or found.ndim != 1:
        raise CheckpointError(f"{path} holds {found.dtype} in {found.ndim} dimensions, expected 1 row of {row} a task")
    return found
