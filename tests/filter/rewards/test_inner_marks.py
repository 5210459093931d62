"""Rewards that ask another one: at once, and most of them for plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from strop.errors import ConfigurationError
from strop.filter.paid import Paid
from strop.filter.rewards.decaying import Decaying
from strop.filter.rewards.earned import Earned
from strop.filter.rewards.fewest_calls import FewestCalls
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.noted import Noted
from strop.filter.rewards.parallel_bonus import ParallelBonus
from strop.filter.rewards.plan_quality import PlanQuality
from strop.filter.rewards.restart_bonus import RestartBonus
from strop.filter.rewards.skill_used import SkillUsed
from strop.roles import Reward
from strop.types import Group
from tests.building import make_group

PLAIN: list[Callable[[Reward], Reward]] = [
    Decaying,
    FewestCalls,
    GradedAnswer,
    ParallelBonus,
    PlanQuality,
    RestartBonus,
    SkillUsed,
]


class Answer:
    def __await__(self) -> Iterator[None]:
        yield


class Later(Reward):
    def __call__(self, group: Group) -> Any:
        return Answer()


class Places(Reward):
    def __call__(self, group: Group) -> list[float | Paid]:
        return [1.0, Paid(1.0)]


@pytest.mark.parametrize("asking", [*PLAIN, Noted])
def test_is_asked_where_the_inner_reward_is_and_does_not_wait(asking: Callable[[Reward], Reward]) -> None:
    assert asking(Earned()).is_inline and not asking(Later()).is_inline
    with pytest.raises(ConfigurationError, match=f"{asking.__name__} needs marks at once, and Later is a coroutine"):
        asking(Later())(make_group([0.0, 1.0]))


@pytest.mark.parametrize("asking", PLAIN)
def test_places_that_it_would_lose_are_refused(asking: Callable[[Reward], Reward]) -> None:
    with pytest.raises(ConfigurationError, match=f"{asking.__name__} needs plain numbers, and Places pays places"):
        asking(Places())(make_group([0.0, 1.0]))


def test_what_is_noted_beside_places_keeps_them() -> None:
    assert Noted(Places())(make_group([0.0, 1.0])) == [1.0, Paid(1.0)]
