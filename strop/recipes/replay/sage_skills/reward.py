"""Skill reward of SAGE (2512.17102): a task's outcome plus a bonus if its chain saved and used a skill."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.demonstrations import demonstration
from strop.environments.format.think_tags import CLOSE, OPEN, between
from strop.filter.reward_values import RewardScores, shaped
from strop.filter.rewards.around import AroundReward
from strop.success import is_right
from strop.types import Group, Rollout

_WORD, _PROSE = re.compile(r"[^\W\d_]{2,}"), 3  # words from which a working is prose


def skills_of(completion: str) -> tuple[str, ...]:
    """The steps of its working in their order, without blanks that say nothing: sentences and lines, or the equations
    that it consists of; a completion without working has none.
    """
    said = between(completion, OPEN, CLOSE)
    if len(_WORD.findall(" ".join(said) or completion)) < _PROSE:
        return tuple(step for part in said for step in part.split() if "=" in step.strip("="))
    return tuple(" ".join(step.split()) for step in demonstration(completion).steps)


_NOTHING = -1.0  # for a rollout that makes no skill


@dataclass(frozen=True)
class SkillUsed(AroundReward):
    """First task of a chain: r1 + u if both are right. Second: r2 + u if it is right. Without a skill: -1.

    r is reward `inner`, u the fact `used` of the second rollout, whose parent is the first.
    """

    needs_success: ClassVar[bool] = True

    def __call__(self, group: Group) -> RewardScores:
        return shaped(self, group, lambda paid: _with_skills(group.rollouts, paid), self.inner)


def _with_skills(rollouts: Sequence[Rollout], paid: Sequence[float]) -> list[float]:
    right = {each.id: is_right(each) for each in rollouts}
    earned = {each.id: each.facts.get("used", 0.0) * right[each.id] for each in rollouts}
    for each in rollouts:
        if right.get(each.parent, False):
            earned[each.parent] = earned[each.id]
    return [
        score + earned[each.id] if skills_of(each.completion) else _NOTHING
        for each, score in zip(rollouts, paid, strict=True)
    ]
