"""Critique-Coder's share of critiques (2509.22824): written tasks in place of some draws, their answers in turn.

Whoever gives the same answer to all of them earns a half, in each draw and not only in the long run.
Papers: critique-coder
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler
from strop.stats.task_lineage import plain, unplain
from strop.types import Task

_MOST = 128  # written tasks of one answer that wait; beyond, the oldest is forgotten
_ROUNDING = 1e-9


@dataclass
class AnswersInTurn(Sampler):
    """Every written task once, for `share` of all draws, evenly spread; none has the answer of the one before.

    Where only tasks with that answer wait, or none, the inner sampler chooses.
    """

    inner: Sampler
    share: float = 0.2  # of the draws
    _waiting: dict[str, Task] = field(default_factory=dict, init=False, repr=False, compare=False)  # by id
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _last: str | None = field(default=None, init=False, repr=False, compare=False)  # answer

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ConfigurationError(f"a share of critiques is between 0 and 1, got {self.share:g}")

    def offer(self, task: Task) -> None:
        self._waiting.setdefault(task.id, task)
        alike = [each.id for each in self._waiting.values() if each.answer == task.answer]
        for old in alike[:-_MOST]:
            del self._waiting[old]

    def next(self, step: int, belief: Belief) -> Task:
        self._num_drawn += 1
        is_due = self._quota(self._num_drawn) > self._quota(self._num_drawn - 1)
        other = next((each for each in self._waiting.values() if each.answer != self._last), None)
        if other is None or not is_due:
            return self.inner.next(step, belief)
        self._last = other.answer
        return self._waiting.pop(other.id)

    def _quota(self, draws: int) -> int:
        return math.floor(draws * self.share + _ROUNDING)

    def state(self) -> dict[str, Any]:
        waiting = [plain(task) for task in self._waiting.values()]
        return {"num_drawn": self._num_drawn, "last": self._last, "waiting": waiting}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn, self._last = int(state["num_drawn"]), state["last"]
        self._waiting = {data["id"]: unplain(data) for data in state["waiting"]}
