"""The share of Chinese characters in what was said (MAYE, 2504.02587), whose reward takes it off.

Papers: rl-scaling-vlm
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import Group, Trajectory

_FIRST, _LAST = "\u4e00", "\u9fff"  # of the common ideographs


@dataclass(frozen=True)
class ForeignScript(Reward):
    """Ideographs among all characters of an attempt's replies, from 0 to 1; nothing said is 0."""

    weight: float = -0.1

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "foreign_script"

    def __call__(self, group: Group) -> list[float]:
        return [_share(attempt) for attempt in group.trajectories]


def _share(attempt: Trajectory) -> float:
    said = "".join(turn.message.content for turn in attempt.turns)
    return sum(_FIRST <= letter <= _LAST for letter in said) / max(len(said), 1)
