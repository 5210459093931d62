"""One reduction for steps of demonstrations, another for all others (ReLIFT, 2506.07527).

Papers: relift
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.roles import Reduction
from strop.types import FloatArray, Group, Origin


@dataclass(frozen=True)
class TaughtApart(Reduction):
    """`taught` where every attempt that counts is a teacher's, else `own`."""

    own: Reduction
    taught: Reduction

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]:
        attempts = [attempt for group in groups for attempt in group.scored]
        is_taught = all(attempt.origin is Origin.TEACHER for attempt in attempts)
        return self.taught(groups) if is_taught else self.own(groups)
