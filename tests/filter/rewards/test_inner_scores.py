"""Rewards that ask another one: at once, and most of them for plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import strop.filter.rewards
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.decaying import Decaying
from strop.filter.rewards.fewest_calls import FewestCalls
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.parallel_bonus import ParallelBonus
from strop.filter.rewards.plan_quality import PlanQuality
from strop.filter.rewards.restart_bonus import RestartBonus
from strop.filter.rewards.skill_used import SkillUsed
from strop.roles import Reward
from strop.types import Group
from tests.building import make_group
from tests.rooms import kinds_of

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
    with pytest.raises(ConfigurationError, match=f"{asking.__name__} needs scores at once, and Later is a coroutine"):
        asking(Later())(make_group([0.0, 1.0]))


@pytest.mark.parametrize("asking", PLAIN)
def test_places_that_it_would_lose_are_refused(asking: Callable[[Reward], Reward]) -> None:
    with pytest.raises(ConfigurationError, match=f"{asking.__name__} needs plain numbers, and Places pays places"):
        asking(Places())(make_group([0.0, 1.0]))


def test_what_is_noted_beside_places_keeps_them() -> None:
    assert Noted(Places())(make_group([0.0, 1.0])) == [1.0, Paid(1.0)]


def test_whoever_asks_another_reward_is_inline_where_that_one_is() -> None:
    """One that always said yes would hide a foreign check within it from whoever asks the outermost alone."""
    asking = []
    for kind in (each for each in kinds_of(strop.filter.rewards, Reward) if is_dataclass(each)):
        if any(field.name in ("inner", "judge") and field.type == "Reward" for field in fields(kind)):
            asking.append(kind)
    assert set(PLAIN) | {Noted} <= set(asking)
    silent = [kind.__name__ for kind in asking if not isinstance(vars(kind).get("is_inline"), property)]
    assert not silent, f"make is_inline of {silent} a property that asks the reward within"
