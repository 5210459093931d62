"""DART's budget by task (2509.23866): few attempts at what is mostly solved, and none longer than a success has been.

The number of attempts is the release's rule. Of the limit on turns only the idea is published; this is its plainest
reading: those of the longest success so far, and no limit before the first. One group in eight has none either: what is
cut at the longest success could never show a longer one.
Papers: dart
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.types import Group

_KNOWN = 10_000  # tasks remembered, the latest
_LOOKS = 1 / 8  # of the groups, at random by their numbers: without a limit on turns


@dataclass
class BySuccess(Budget):
    """`size` attempts while a task's success p is below `easy`, else max(least, floor((size + 1) / p - (size - 1))).

    p is over the task's latest `size` own attempts; an attempt with more than half of the reward is a success. At the
    paper's size of 8 that is 9 / p - 7; the release has easy=1, so that only what is always solved gets fewer.
    """

    size: int = 8  # attempts at a task that is not easy
    easy: float = 0.6  # success from which a task gets fewer
    least: int = 2  # attempts at any task

    _latest: dict[str, list[bool]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _longest: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # success, in turns

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.size or not 0 < self.easy <= 1:
            raise ConfigurationError(
                f"BySuccess needs 1 <= least <= size and 0 < easy <= 1, got {self.least}, {self.size} and {self.easy}"
            )

    def attempts(self, group: Group) -> int:
        if group.trajectories:
            return 0
        seen = self._latest.get(group.task.id, [])
        share = sum(seen) / len(seen) if seen else 0.0
        if share < self.easy:
            return self.size
        wanted = math.floor((self.size + 1) / share - (self.size - 1) + 1e-9)  # 0.9 is no binary number
        return min(max(wanted, self.least), self.size)

    def turns(self, group: Group) -> int:
        """Those of the task's longest success; 0 before the first, and now and then after it."""
        is_look = np.random.default_rng(group.number).random() < _LOOKS
        return 0 if is_look else self._longest.get(group.task.id, 0)

    def observe(self, group: Group) -> None:
        own = group.own
        seen = self._latest.pop(name := group.task.id, [])
        self._latest[name] = [*seen, *(attempt.reward > 0.5 for attempt in own)][-self.size :]
        if turns := [len(attempt.turns) for attempt in own if attempt.reward > 0.5]:
            self._longest[name] = max(self._longest.get(name, 0), *turns)
        while len(self._latest) > _KNOWN:
            self._longest.pop(forgotten := next(iter(self._latest)), None)
            del self._latest[forgotten]

    def state(self) -> dict[str, Any]:
        latest = {task: [int(each) for each in seen] for task, seen in self._latest.items()}
        return {"latest": latest, "longest": dict(self._longest)}

    def restore(self, state: dict[str, Any]) -> None:
        self._latest = {str(task): [bool(each) for each in seen] for task, seen in state["latest"].items()}
        self._longest = {str(task): int(turns) for task, turns in state.get("longest", {}).items()}
