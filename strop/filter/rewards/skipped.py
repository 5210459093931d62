"""Whether the policy left its thought empty (TON, 2505.16854): by itself worth nothing, a figure to watch.

Papers: ton
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Skipped(Reward):
    """1 where the last reply begins with tags around nothing, else 0; skipping spreads without pay, or not at all."""

    weight: float = 0.0

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(_is_empty(attempt.reply)) for attempt in group.trajectories]


def _is_empty(reply: str) -> bool:
    before, opened, rest = reply.partition(OPEN)
    thought, closed, _ = rest.partition(CLOSE)
    return bool(opened and closed) and not before.strip() and not thought.strip()
