"""Rewards that ask another one: at once, and most of them for plain numbers."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

import pytest

import strop.filter.rewards
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import WeightedSum
from strop.recipes.guide.pta_grpo.reward import PlanQuality
from strop.recipes.replay.lightsearcher.reward import FewestCalls
from strop.recipes.replay.sage_skills.reward import SkillUsed
from strop.recipes.rollout.parallel_r1.reward import ParallelBonus
from strop.recipes.rollout.s_grpo.reward import Decaying
from strop.recipes.rollout.satori.reward import RestartBonus
from strop.roles import Reward
from strop.types import Group, ScoreRange
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


@dataclass
class Later(Reward):
    weight: float = 1.0

    grades: ClassVar[ScoreRange | None] = ScoreRange(1.0, 10.0)

    async def __call__(self, group: Group) -> list[float]:
        await asyncio.sleep(0)
        return [10.0, 1.0]


def said_by(reward: Reward, group: Group) -> Sequence[float | Paid]:
    """What a reward returns, also one that waits."""

    async def asked() -> Sequence[float | Paid]:
        told = reward(group)
        return await told if isinstance(told, Awaitable) else told

    return asyncio.run(asked())


class ByLength(Reward):
    def __call__(self, group: Group) -> list[float]:
        return [float(rollout.num_tokens) for rollout in group.rollouts]


class Places(Reward):
    def __call__(self, group: Group) -> list[float | Paid]:
        return [1.0, Paid(1.0)]


@pytest.mark.parametrize("asking", [*PLAIN, Noted])
def test_it_is_inline_where_the_inner_reward_is_and_waits_for_one_that_waits(
    asking: Callable[[Reward], Reward],
) -> None:
    """And keeps how right rollouts are by the inner reward's own range, here from 1 to 10."""
    assert asking(Earned()).is_inline and not asking(Later()).is_inline
    group = make_group([0.0, 1.0])
    assert len(said_by(asking(Later()), group)) == 2
    assert [rollout.success for rollout in group.rollouts] == [1.0, 0.0]


def test_a_weighted_sum_takes_success_from_the_part_that_grades() -> None:
    group = make_group([0.0, 1.0], [2, 6])
    both = WeightedSum((ByLength(), Later(weight=0.5)))
    assert said_by(both, group) == [2 + 5.0, 6 + 0.5]
    assert [rollout.success for rollout in group.rollouts] == [1.0, 0.0]


def test_no_inner_score_is_no_score() -> None:
    class Unsure(Later):
        async def __call__(self, group: Group) -> list[float]:
            return [math.nan, 10.0]

    found = said_by(GradedAnswer(Unsure()), make_group([0.0, 1.0]))
    assert math.isnan(found[0]) and found[1] == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize("asking", PLAIN)
def test_places_that_it_would_lose_are_refused(asking: Callable[[Reward], Reward]) -> None:
    with pytest.raises(
        ConfigurationError, match=f"{asking.__name__} needs one number per rollout, and Places pays spans"
    ):
        asking(Places())(make_group([0.0, 1.0]))


def test_what_is_noted_beside_places_keeps_them() -> None:
    assert said_by(Noted(Places()), make_group([0.0, 1.0])) == [1.0, Paid(1.0)]


def test_whoever_asks_another_reward_is_inline_where_that_one_is() -> None:
    """One that always said yes would hide a foreign check within it from whoever asks the outermost alone."""
    asking = []
    for kind in (each for each in kinds_of(strop.filter.rewards, Reward) if is_dataclass(each)):
        if any(field.name in ("inner", "judge") and field.type == "Reward" for field in fields(kind)):
            asking.append(kind)
    assert set(PLAIN) | {Noted} <= set(asking)
    silent = [kind.__name__ for kind in asking if not isinstance(inspect.getattr_static(kind, "is_inline"), property)]
    assert not silent, f"make is_inline of {silent} a property that asks the reward within"
