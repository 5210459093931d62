"""Optima's selection (2410.08115): of all attempts at a task the best one, if it is good enough.

Papers: optima
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.roles import Gate
from strop.success import is_right
from strop.types import Group, Verdict


@dataclass(frozen=True)
class Best(Gate):
    """Keep the attempt of the largest reward, the first of equals; drop the group if that is less than `least`."""

    least: float = 0.6  # reward of an attempt that is kept

    def __call__(self, group: Group) -> Verdict:
        best = max(group.scored, key=lambda attempt: attempt.reward)
        if not is_right(best.reward, self.least):
            return Verdict(None, f"no reward reaches {self.least:g}")
        return Verdict(replace(group, trajectories=[best]), f"kept the best of {len(group.scored)} attempts")
