"""Sliding window of recently tried tasks and their success rates, from which estimators predict other tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from strop.success import successes
from strop.types import Group, IntArray


class Tried(NamedTuple):
    """Latest group of a task: version, prompt, successes and number of rollouts."""

    version: int
    number: int
    prompt: IntArray
    right: float
    made: float


@dataclass
class Support:
    """Last `size` tasks, each with its latest outcome; ordered by version and number, not by completion time."""

    size: int
    _tried: dict[str, Tried] = field(default_factory=dict, init=False, repr=False, compare=False)  # by task

    def __len__(self) -> int:
        return len(self._tried)

    def add(self, group: Group, prompt: IntArray) -> None:
        right, count = successes(group)
        new = Tried(group.version, group.number, prompt, right, count)
        old = self._tried.get(group.task.id)
        if not count or (old is not None and old[:2] > new[:2]):
            return
        self._tried[group.task.id] = new
        ordered = sorted(self._tried.items(), key=lambda item: item[1][:2])
        self._tried = dict(ordered[max(len(ordered) - self.size, 0) :])

    @property
    def prompts(self) -> list[IntArray]:
        return [tried.prompt for tried in self._tried.values()]

    @property
    def shares(self) -> NDArray[np.float64]:
        return np.array([tried.right / tried.made for tried in self._tried.values()])

    @property
    def counts(self) -> NDArray[np.float64]:
        return np.array([tried.made for tried in self._tried.values()])

    def state(self) -> dict[str, Any]:
        return {name: [*tried[:2], tried.prompt.tolist(), *tried[3:]] for name, tried in self._tried.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self._tried = {
            name: Tried(int(version), int(number), np.array(prompt), float(right), float(count))
            for name, (version, number, prompt, right, count) in state.items()
        }
