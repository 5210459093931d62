"""Rewards set by the strategy, e.g. of a reflection by the success of the retry that follows it.

Papers: r3l, evolving-rl
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, replace

from strop.filter.paid_text import Paid
from strop.filter.reward_values import keep_successes, scores_of
from strop.roles import Reward
from strop.types import Group

_NAME = "noted"  # the fact that a strategy leaves


@dataclass(frozen=True)
class Noted(Reward):
    """Fact `noted` of a rollout that has one; reward `inner` for all others."""

    inner: Reward

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def weight(self) -> float:
        return self.inner.weight

    async def __call__(self, group: Group) -> list[float | Paid]:
        others = [rollout for rollout in group.rollouts if _NAME not in rollout.facts]
        told = self.inner(replace(group, rollouts=others))
        found = await told if isinstance(told, Awaitable) else told
        keep_successes(self.inner, others, scores_of(found, len(others)))
        scores = dict(zip((rollout.id for rollout in others), found, strict=True))
        return [scores[each.id] if each.id in scores else each.facts[_NAME] for each in group.rollouts]
