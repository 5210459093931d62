"""Concise reasoning's choice of tasks (2504.05185): only those that are sometimes solved, with all their attempts.

With a discounting critic an attempt at an unsolvable task is the less bad the longer it is; such tasks make replies
grow.
Papers: concise-reasoning
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.roles import Gate
from strop.success import is_right
from strop.types import Group, Verdict

_KNOWN = 10_000  # tasks remembered, those solved last


@dataclass
class Solvable(Gate):
    """Drop groups of tasks that no attempt has solved so far; from its first success on, all of a task's groups stay.

    Solved is a reward of at least `right`. The choice is by task and not by group: wrong attempts at a solvable task
    are kept, whether or not one beside them is right.
    """

    right: float = 1.0  # reward of a right attempt
    _solved: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, group: Group) -> Verdict:
        if any(is_right(attempt.reward, self.right) for attempt in group.scored):
            self._solved.pop(group.task.id, None)
            self._solved[group.task.id] = None
            while len(self._solved) > _KNOWN:
                del self._solved[next(iter(self._solved))]
        if group.scored and group.task.id in self._solved:
            return Verdict(group)
        return Verdict(None, f"no attempt at the task has reached {self.right:g}")

    def state(self) -> dict[str, Any]:
        return {"solved": list(self._solved)}

    def restore(self, state: dict[str, Any]) -> None:
        self._solved = dict.fromkeys(state["solved"])
