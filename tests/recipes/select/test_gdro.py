"""GDRO's rollouts: the square-root law by hand, the mean that is kept, bins, and memory."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.gdro import ShadowPrice, pass_bin
from strop.types import Group
from tests.building import TASK, make_group


def asked(probability: float, version: int = 0) -> Group:
    return Group(0, TASK, [], version, predicted=(probability, 0.01))


def done(
    probability: float, rewards: list[float], version: int = 0, number: int = 0, failed: tuple[int, ...] = ()
) -> Group:
    return replace(make_group(rewards, number=number, failed=failed), version=version, predicted=(probability, 0.01))


def test_bins_are_parts_of_the_probability_that_one_of_several_tries_is_right() -> None:
    """One try: .05 is in the first of ten, 1 in the last. Eight: 1 - .95^8 = .337 and 1 - .5^8 = .996."""
    assert [pass_bin(asked(probability), 10, 1) for probability in (0.05, 0.1, 0.55, 0.999, 1.0)] == [0, 1, 5, 9, 9]
    assert [pass_bin(asked(probability), 10, 8) for probability in (0.0, 0.05, 0.1, 0.5)] == [0, 3, 5, 9]
    assert pass_bin(Group(0, TASK, []), 10, 1) == 5, "without a prediction, one half"


def test_the_square_root_law_of_the_card() -> None:
    """Variances of .25 and .01, equal shares, a mean of 40 (4, ten times): 66.7 and 13.3."""
    budget = ShadowPrice(40, 2, 120, bins=2, tries=1)
    budget.restore(budget.state() | {"variances": [0.25, 0.01]})
    assert [budget.rollouts(asked(probability)) for probability in (0.1, 0.9)] == [40, 8], "at the first price"
    for number in range(2000):
        probability = (0.1, 0.9)[number % 2]
        count = budget.rollouts(asked(probability))
        budget.observe(done(probability, [0.0] * count, number=number, failed=tuple(range(count))))
    assert [budget.rollouts(asked(probability)) for probability in (0.1, 0.9)] == [67, 13]


def test_a_bin_learns_from_all_groups_of_earlier_weights_at_once() -> None:
    budget = ShadowPrice(4, 2, 12, bins=1, rate=0.5)
    # variances 1/3 of 4 rollouts (2 of 4: .25 * 4/3), 0 of 2: weighed 3 to 1, 1/4; half way from .25: .25
    budget.observe(done(0.5, [1.0, 1.0, 0.0, 0.0]))
    budget.observe(done(0.5, [1.0, 1.0], number=1))
    budget.rollouts(asked(0.5, 1))
    assert budget.state()["variances"] == pytest.approx([0.25])
    budget.observe(done(0.5, [1.0, 1.0, 0.0], 1, 2, failed=(2,)))  # 0
    budget.observe(done(0.5, [1.0, 0.0], 1, 3, failed=(1,)))  # one rollout has no variance
    budget.rollouts(asked(0.5, 1))
    assert budget.state()["variances"] == pytest.approx([0.25]), "weights have not changed"
    budget.rollouts(asked(0.5, 2))
    assert budget.state()["variances"] == pytest.approx([0.125])
    # 4 * sqrt(.125 / .25) / exp(.05 * (11 / 4 - 4))
    assert budget.learn([]) == {"price": pytest.approx(exp(0.05 * (11 / 4 - 4))), "rollouts_spread": 0.0}
    assert budget.rollouts(asked(0.5, 2)) == 3


def test_order_changes_nothing_and_the_mean_is_kept() -> None:
    groups = [done(0.9, [1.0, 0.0, 0.0], 0, 0), done(0.9, [0.3, 0.1], 0, 1), done(0.02, [0.0] * 5, 0, 2)]
    there, back = ShadowPrice(), ShadowPrice()
    for group in groups:
        there.observe(group)
    for group in reversed(groups):
        back.observe(group)
    there.rollouts(asked(0.5, 1)), back.rollouts(asked(0.5, 1))
    assert there.state() == back.state()
    spent = 0
    for group in range(3000):
        probability = (0.03, 0.5)[group % 2]
        count = there.rollouts(asked(probability, 2 + group // 10))
        rewards = [0.0] * count if probability < 0.5 else [1.0, 0.0] * (count // 2) + [1.0] * (count % 2)
        there.observe(done(probability, rewards, 2 + group // 10, group))
        spent += count
    assert spent / 3000 == pytest.approx(4, abs=0.1)
    counts = [there.rollouts(asked(probability, 400)) for probability in (0.03, 0.5)]
    assert counts in ([2, 5], [2, 6], [2, 7]), "2 are the least, 6 are left on average"


def test_one_wave_and_its_metrics() -> None:
    budget = ShadowPrice()
    assert budget.rollouts(make_group([0.0])) == 0
    assert budget.learn([make_group([0.0] * 5), make_group([0.0] * 2)]) == {"price": 1.0, "rollouts_spread": 3.0}


def test_state_is_restored_and_nonsense_refused() -> None:
    budget, again = ShadowPrice(), ShadowPrice()
    budget.observe(done(0.5, [1.0, 0.0, 0.0, 0.0]))
    budget.rollouts(asked(0.5, 1))
    budget.observe(done(0.5, [1.0] * 12, 1, 1))
    again.restore(json.loads(json.dumps(budget.state())))
    assert again.rollouts(asked(0.5, 2)) == budget.rollouts(asked(0.5, 2)) and again.state() == budget.state()
    for wrong in ((4, 1, 12), (4, 4, 12), (12, 2, 12)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[1]}, {wrong[0]} and {wrong[2]}"):
            ShadowPrice(*wrong)
    for more in ({"bins": 0}, {"tries": 0}, {"rate": 0.0}, {"rate": 1.5}):
        with pytest.raises(ConfigurationError, match="bins >= 1"):
            ShadowPrice(**more)  # type: ignore[arg-type]
