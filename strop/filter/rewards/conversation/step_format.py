"""Which share of an attempt's replies can be read as an action (Mobile-R1, 2506.20332), whatever comes of them.

Papers: mobile-r1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.actions import action_in
from strop.roles import Reward
from strop.types import Group, Trajectory


@dataclass(frozen=True)
class StepFormat(Reward):
    """The mean over replies of 1 for one well-formed call or an answer; replies that were given do not count."""

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [_share(attempt) for attempt in group.trajectories]


def _share(attempt: Trajectory) -> float:
    formed = [action_in(turn.message).is_formed for turn in attempt.turns if len(turn.tokens)]
    return sum(formed) / len(formed) if formed else 0.0
