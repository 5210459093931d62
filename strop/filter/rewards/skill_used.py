"""SAGE's reward (2512.17102): beside its own outcome a task earns what the skills of its chain were good for.

Papers: sage-skills
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.skills import skills_of
from strop.filter.reward_values import plain_marks
from strop.roles import Reward
from strop.success import is_right
from strop.types import Group

_NOTHING = -1.0  # for an attempt that makes no skill


@dataclass(frozen=True)
class SkillUsed(Reward):
    """The first of a chain: r1 + u where both are right. The second: r2 + u where it is right. Without a skill: -1.

    r is what `inner` says and u the fact `used` of the second, whose parent is the first.
    """

    inner: Reward
    weight: float = 1.0  # of this reward beside others

    is_relative: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    def __call__(self, group: Group) -> list[float]:
        paid, attempts = plain_marks(self, self.inner, group), group.trajectories
        right = {each.id: is_right(mark) for each, mark in zip(attempts, paid, strict=True)}
        earned = {each.id: each.facts.get("used", 0.0) * right[each.id] for each in attempts}
        for each in attempts:
            if right.get(each.parent, False):
                earned[each.parent] = earned[each.id]
        return [
            mark + earned[each.id] if skills_of(each.reply) else _NOTHING
            for each, mark in zip(attempts, paid, strict=True)
        ]
