"""DART's number of attempts (2509.23866): as many as ever for what is hard, few for what is mostly solved.

Of its other rules the length limit by task is not here: no formula of it is known.
Papers: dart
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.types import Group, Origin, Task

_KNOWN = 10_000  # tasks remembered, the latest


@dataclass
class BySuccess:
    """`size` attempts while a task's success p is below `easy`, else max(least, floor((size + 1) / p - (size - 1))).

    p is over the task's latest `size` own attempts; an attempt with more than half of the reward is a success. At the
    paper's size of 8 that is 9 / p - 7; the release has easy=1, so that only what is always solved gets fewer.
    """

    size: int = 8
    easy: float = 0.6
    least: int = 2

    _latest: dict[str, list[bool]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.size or not 0 < self.easy <= 1:
            raise ConfigurationError(
                f"BySuccess needs 1 <= least <= size and 0 < easy <= 1, got {self.least}, {self.size} and {self.easy}"
            )

    def attempts(self, task: Task) -> int:
        seen = self._latest.get(task.id, [])
        share = sum(seen) / len(seen) if seen else 0.0
        if share < self.easy:
            return self.size
        wanted = math.floor((self.size + 1) / share - (self.size - 1) + 1e-9)  # 0.9 is no binary number
        return min(max(wanted, self.least), self.size)

    def observe(self, group: Group) -> None:
        own = [attempt.reward > 0.5 for attempt in group.scored if attempt.origin is Origin.POLICY]
        seen = self._latest.pop(group.task.id, [])
        self._latest[group.task.id] = [*seen, *own][-self.size :]
        while len(self._latest) > _KNOWN:
            del self._latest[next(iter(self._latest))]

    def state(self) -> dict[str, Any]:
        return {"latest": {task: [int(each) for each in seen] for task, seen in self._latest.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._latest = {str(task): [bool(each) for each in seen] for task, seen in state["latest"].items()}
