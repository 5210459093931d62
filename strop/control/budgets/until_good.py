"""OpenWebVoyager's exploration (2410.19609): try again until an attempt is judged good, at most so often.

One after the other, so that an easy task costs one attempt; with a gate that keeps what is good, every task that was
solved gives exactly one attempt, and easy ones weigh as much as hard ones.
Papers: openwebvoyager
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Budget
from strop.success import is_right
from strop.types import Group, Metrics


@dataclass
class UntilGood(Budget):
    """One attempt, and another as long as none earned `good`; those that failed, or that nobody could judge, count."""

    most: int = 5  # attempts at a task
    good: float = 1.0  # least reward of an attempt that is the last

    _tries: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # since the last step
    _solved: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ConfigurationError(f"UntilGood needs most >= 1, got {self.most}")

    def attempts(self, group: Group) -> int:
        return int(len(group.trajectories) < self.most and not self._is_solved(group))

    def observe(self, group: Group) -> None:
        self._tries.append(len(group.trajectories))
        self._solved += self._is_solved(group)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Attempts at a task, and tasks that were given up, since the last step."""
        tries, solved = self._tries, self._solved
        self._tries, self._solved = [], 0
        count = max(len(tries), 1)
        return {"tries": sum(tries) / count, "given_up_share": (len(tries) - solved) / count}

    def state(self) -> dict[str, Any]:
        return {"tries": list(self._tries), "solved": self._solved}

    def restore(self, state: dict[str, Any]) -> None:
        self._tries, self._solved = list(state["tries"]), state["solved"]

    def _is_solved(self, group: Group) -> bool:
        return any(is_right(attempt.reward, self.good) for attempt in group.scored)
