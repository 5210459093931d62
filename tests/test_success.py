"""What is known of a task's difficulty: the environment's word alone, and for as many rollouts as each stands for."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import ClassVar

import pytest

from strop import recipe
from strop.control.estimators.pass_rate_counts import Counts
from strop.errors import ConfigurationError
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.scoring import Scorer
from strop.launch.checks.parts_agree import success_problems
from strop.recipes.user_rewards import own_rewards, with_success
from strop.roles import Reward
from strop.success import SURVIVAL, is_lost, is_right, reaches, successes
from strop.types import Group, ScoreRange
from tests.building import make_group


def test_a_estimator_takes_the_weights() -> None:
    group, estimator = make_group([1.0, 0.0, 0.0], pruned=[2]), Counts()
    for rollout, probability in zip(group.rollouts, (0.25, 0.5, 0.5), strict=True):
        rollout.facts[SURVIVAL] = probability
    estimator.observe(group)
    assert estimator.predict([group.task], 1)[0] == pytest.approx([5 / 8])  # 4 right ones of 6, and one of each before
    again = Counts()
    again.restore(estimator.state())
    assert again.state() == estimator.state()


def scored(group: Group, *rewards: Reward) -> Group:
    """The group as a run's scorer leaves it."""
    for rollout in group.rollouts:
        rollout.rewards, rollout.facts = {}, {}
    asyncio.run(Scorer(rewards)(group))
    return group


@dataclass(frozen=True)
class Told(Reward):
    """Scores as given, in a range of their own."""

    scores: tuple[float, ...]
    grades: ScoreRange | None = None
    weight: float = 1.0
    name: str = "told"

    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return list(self.scores[: len(group.rollouts)])


@pytest.mark.parametrize(
    ("low", "high", "scores"),
    [(0, 1, (1, 0, 0.5)), (-1, 1, (1, -1, 0)), (0.1, 0.9, (0.9, 0.1, 0.5)), (1, 10, (10, 1, 5.5)), (1, 0, (0, 1, 0.5))],
)
def test_success_follows_the_declared_range(low: float, high: float, scores: tuple[float, ...]) -> None:
    group = scored(make_group([0.0] * 3), Told(scores, ScoreRange(low, high)))
    assert [rollout.success for rollout in group.rollouts] == pytest.approx([1.0, 0.0, 0.5])
    assert [is_right(rollout) for rollout in group.rollouts] == [True, False, False]
    assert successes(group) == pytest.approx((1.5, 3.0)) and not is_lost(group.rollouts)
    assert is_lost(group.rollouts[1:2])


@pytest.mark.parametrize("ends", [(0.5, 0.5), (math.nan, 1.0), (0.0, math.inf), (-1e308, 1.7e308)])
def test_a_range_without_two_finite_ends_is_refused(ends: tuple[float, float]) -> None:
    """Its successes would be no numbers."""
    with pytest.raises(ConfigurationError, match="finite score of a wrong and of a right"):
        with_success((Told((1.0,)),), (), False, ends)
    with pytest.raises(ConfigurationError, match=r"FILE\.py:FUNCTION or env"):
        own_rewards(f"{'9' * 400}*env", ())


def test_rewards_of_form_and_length_never_count() -> None:
    """A right answer that was priced for its length, and a wrong one that was praised for its form."""
    form = Told((-0.75, 5.0), name="form")
    group = scored(make_group([0.0] * 2), form, Told((1.0, 0.0), ScoreRange()))
    assert successes(group) == (1.0, 2.0) and [rollout.reward for rollout in group.rollouts] == [0.25, 5.0]
    unknown = scored(make_group([0.0] * 2), form)
    assert [rollout.success for rollout in unknown.rollouts] == [None, None]
    assert successes(unknown) == (0.0, 0.0) and not is_lost(unknown.rollouts), "nobody knows"


def test_the_first_reward_that_grades_counts_also_inside_another() -> None:
    shaped = GradedAnswer(Told((1.0, -1.0), ScoreRange(-1.0, 1.0)))
    group = scored(make_group([0.0] * 2), shaped, Told((0.0, 1.0), ScoreRange(), weight=0.0, name="other"))
    assert [rollout.success for rollout in group.rollouts] == [1.0, 0.0]


def test_what_needs_success_is_refused_where_nobody_knows() -> None:
    run = recipe("ghpo", env="arithmetic:6")
    assert not success_problems(run)
    run.rewards = (Told((0.0,), name="style"),)
    (sentence,) = success_problems(run)
    assert "InWaves" in sentence and "reward_range=LOW,HIGH" in sentence


def test_what_rounding_takes_from_a_weighted_sum_is_not_missed() -> None:
    assert 0.7 + 0.2 + 0.1 < 1 and reaches(0.7 + 0.2 + 0.1) and not reaches(0.99999)
    assert reaches(0.5, 0.5) and not reaches(0.49, 0.5)
