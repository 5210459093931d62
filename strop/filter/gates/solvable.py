"""Concise reasoning's choice of tasks (2504.05185): only those that are sometimes solved.

With a discounting critic an attempt at an unsolvable task is the less bad the longer it is; such tasks make replies
grow.
Papers: concise-reasoning
"""

from __future__ import annotations

from dataclasses import dataclass

from strop.roles import Gate
from strop.types import Group, Verdict


@dataclass(frozen=True)
class Solvable(Gate):
    """Drop a group none of whose attempts reaches the reward `right`; the others stay as they are."""

    right: float = 1.0

    def __call__(self, group: Group) -> Verdict:
        if any(attempt.reward >= self.right - 1e-9 for attempt in group.scored):
            return Verdict(group)
        return Verdict(None, f"no attempt reaches {self.right:g}")
