"""AceReason-Nemotron's filter (2505.16400): what the policy solves too often is not tried again.

Reading: the paper drops tasks before a stage by 16 attempts of the model that begins it; here a task is dropped by its
own group, the first time that solves it too often, as the paper's last code stage does after each epoch.
Papers: acereason-nemotron
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler
from strop.success import successes
from strop.types import Group, Metrics, Task

_KNOWN = 100_000  # solved tasks remembered, the latest
_TRIES = 1000  # tasks in a row that may be passed over


@dataclass
class Unsolved(Sampler):
    """What `inner` chooses, less tasks of which a group solved a larger share than `most`.

    Where it comes round to a task that was just passed over, all are solved, and that one is tried after all. Groups
    may come in any order.
    """

    inner: Sampler
    most: float = 6 / 16  # share of right attempts up to which a task is tried again
    _solved: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _passed_over: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 1:
            raise ConfigurationError(f"Unsolved needs 0 <= most <= 1, got {self.most}")

    def next(self, step: int, belief: Belief) -> Task:
        task, passed = self.inner.next(step, belief), set[str]()
        while task.id in self._solved and task.id not in passed and len(passed) < _TRIES:
            passed.add(task.id)
            task = self.inner.next(step, belief)
        self._passed_over += len(passed)
        return task

    def observe(self, group: Group) -> None:
        right, count = successes(group)
        if right > self.most * count:
            self._solved[group.task.id] = None
        while len(self._solved) > _KNOWN:
            del self._solved[next(iter(self._solved))]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing itself; says how many tasks are solved, and how often one of them was passed over, so far."""
        return {"solved_tasks": float(len(self._solved)), "passed_over": float(self._passed_over)}

    def state(self) -> dict[str, Any]:
        return {"solved": list(self._solved), "passed_over": self._passed_over}

    def restore(self, state: dict[str, Any]) -> None:
        self._solved, self._passed_over = dict.fromkeys(state["solved"]), int(state["passed_over"])
