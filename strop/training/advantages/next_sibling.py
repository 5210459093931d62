"""A negative control: every rollout gets the advantage that the sibling after it has earned.

Sizes and signs of the advantage stay what they were, group by group; which rollout they belong to is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Advantage
from strop.types import Group, Rollout


@dataclass(frozen=True)
class NextSibling(Advantage):
    """What `inner` gives, one place further around the group; the mean over its tokens, where they differ."""

    inner: Advantage

    min_group: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for group in groups:
            given = [_mean(rollout) for rollout in group.scored]
            for rollout, advantage in zip(group.scored, given[1:] + given[:1], strict=True):
                rollout.set_advantage(advantage)


def _mean(rollout: Rollout) -> float:
    advantage = rollout.advantages
    return float(advantage.mean()) if advantage is not None and len(advantage) else 0.0
