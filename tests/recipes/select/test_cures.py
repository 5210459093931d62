"""CurES's numbers of rollouts by hand, their mean, and their memory."""

from __future__ import annotations

import json
from math import exp

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.cures import ByDeviation
from strop.types import Group
from tests.building import TASK, make_group


def asked(probability: float) -> Group:
    return Group(0, TASK, [], predicted=(probability, 0.01))


def test_rollouts_are_in_proportion_to_the_deviation() -> None:
    """sqrt(u (1 - u)) is 0, .433, .5, .433, 0: 100 at a half, 86.6 at the quarters; at the ends the least."""
    budget = ByDeviation(100, 2, 200)
    assert [budget.rollouts(asked(probability)) for probability in (0.0, 0.25, 0.5, 0.75, 1.0)] == [2, 87, 100, 87, 2]
    assert budget.rollouts(Group(0, TASK, [])) == 100, "of which nothing was predicted"
    assert budget.rollouts(make_group([1.0])) == 0, "one wave"


def test_a_group_that_spent_more_leaves_fewer_rollouts_to_the_next_ones() -> None:
    budget = ByDeviation(10, 2, 40)
    budget.observe(make_group([0.0] * 30))  # three times the mean: the price is exp(.05 * 2)
    assert budget.learn([]) == {"price": pytest.approx(exp(0.1)), "rollouts_spread": 0.0}
    assert budget.rollouts(asked(0.5)) == 9  # 10 / 1.105
    budget.observe(make_group([]))
    budget.observe(make_group([0.0] * 2, failed=[0]))  # one that failed was a rollout
    assert budget.learn([make_group([1.0] * 5), make_group([1.0] * 2)])["rollouts_spread"] == 3
    assert budget.learn([])["price"] == pytest.approx(exp(0.05 * (32 / 10 - 3)))


def test_the_mean_is_kept_whatever_is_predicted() -> None:
    budget, spent = ByDeviation(8, 2, 32), 0
    for group in range(3000):
        count = budget.rollouts(asked((0.02, 0.3, 0.97)[group % 3]))
        budget.observe(make_group([0.0] * count))
        spent += count
    assert spent / 3000 == pytest.approx(8, abs=0.15)
    counts = [budget.rollouts(asked(probability)) for probability in (0.02, 0.3, 0.97)]
    assert counts[1] > 2 * counts[0] and counts[1] > 2 * counts[2]


def test_state_is_restored_and_nonsense_refused() -> None:
    budget, again = ByDeviation(8, 2, 32), ByDeviation(8, 2, 32)
    for size in (32, 32, 20):
        budget.observe(make_group([0.0] * size))
    again.restore(json.loads(json.dumps(budget.state())))
    assert again.rollouts(asked(0.4)) == budget.rollouts(asked(0.4)) < 8
    for wrong in ((8, 8, 32), (8, 0, 32), (8, 2, 8)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[1]}, {wrong[0]} and {wrong[2]}"):
            ByDeviation(*wrong)
