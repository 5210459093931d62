"""GDRO's weights by hand, what they scale, and that they are the same after a restart."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.gdro import BinWeighted
from strop.training.advantages.group_relative import GroupMean
from strop.types import SUCCESS, Group, Origin
from tests.building import advantages_of, make_group


def group(probability: float, rewards: list[float], number: int = 0, failed: tuple[int, ...] = ()) -> Group:
    return replace(make_group(rewards, number=number, failed=failed), predicted=(probability, 0.01))


def halves(strength: float = 1.0, mixed: float = 0.0, rate: float = 0.5, most: float = 15.0) -> BinWeighted:
    """Two bins, of one try: below and above one half."""
    return BinWeighted(GroupMean(), strength, mixed, rate, most, bins=2, tries=1)


def test_the_first_batch_is_not_weighted_and_later_ones_by_earlier_losses() -> None:
    advantage = halves()
    hard, easy = group(0.2, [0.0, 0.0, 0.0, 1.0]), group(0.9, [1.0, 1.0, 1.0, 0.0], 1)
    advantage([hard, easy])
    assert advantages_of(hard) == pytest.approx([-0.25, -0.25, -0.25, 0.75]), "nothing is known yet"
    # losses .75 and .25, half way from 0: S = .375 and .125
    powers = exp(0.375), exp(0.125)
    weights = [power / (sum(powers) / 2) for power in powers]
    assert advantage.weights() == pytest.approx(weights)
    advantage([hard, easy])
    assert advantages_of(hard) == pytest.approx([-0.25 * weights[0]] * 3 + [0.75 * weights[0]])
    assert advantages_of(easy) == pytest.approx([0.25 * weights[1]] * 3 + [-0.75 * weights[1]])
    metrics = advantage.learn([])
    assert metrics["bin_weighting"] == pytest.approx((weights[0] - 1 + 1 - weights[1]) / 2)
    # S = .375 + .5 * (.75 - .375), .125 + .5 * (.25 - .125)
    powers = exp(0.5625), exp(0.1875)
    assert metrics["bin_spread"] == pytest.approx((powers[0] - powers[1]) / (sum(powers) / 2))


def test_equal_bins_leave_all_as_it_is() -> None:
    advantage = halves()
    for _ in range(3):
        groups = [group(0.2, [1.0, 0.0]), group(0.9, [1.0, 0.0], 1)]
        advantage(groups)
    assert [advantages_of(each) for each in groups] == [pytest.approx([0.5, -0.5])] * 2


def test_an_even_share_is_mixed_in_and_weights_have_a_bound() -> None:
    mixed, bound = halves(strength=4.0, mixed=0.25, rate=1.0), halves(strength=4.0, rate=1.0, most=1.5)
    for advantage in (mixed, bound):
        advantage([group(0.2, [0.0, 0.0]), group(0.9, [1.0, 1.0], 1)])
    powers = exp(4.0), 1.0
    plain = [power / (sum(powers) / 2) for power in powers]
    assert mixed.weights() == pytest.approx([0.75 * plain[0] + 0.25, 0.75 * plain[1] + 0.25])
    assert bound.weights() == pytest.approx([1.5, plain[1]]) and plain[0] > 1.9


def test_losses_are_of_own_rollouts_that_count_and_of_the_envs_outcome() -> None:
    advantage = halves(rate=1.0)
    one = group(0.2, [1.0, 0.0, 0.0], failed=(1,))
    one.rollouts[2].origin = Origin.TEACHER
    other = group(0.9, [-1.0, -1.0], 1)
    for rollout in other.rollouts:
        rollout.rewards, rollout.facts[SUCCESS] = {"outcome": 1.0, "overlong": -2.0}, 1.0
    advantage([one, other])
    assert advantage.state() == {"losses": [0.0, 0.0]}, "all own ones were right"
    assert advantages_of(one)[1] is None, "no advantage where the inner one gave none"
    advantage([group(0.2, [0.25, 0.5])])
    assert advantage.state() == {"losses": [pytest.approx(0.625), 0.0]}, "a bin that did not come keeps its loss"


def test_state_is_restored_and_nonsense_refused() -> None:
    advantage, again = halves(), halves()
    advantage([group(0.2, [0.0, 1.0, 0.0])])
    again.restore(json.loads(json.dumps(advantage.state())))
    assert again.weights().tolist() == advantage.weights().tolist() != [1.0, 1.0]
    advantage([])
    assert advantage.learn([])["bin_weighting"] == 0.0
    for wrong in ({"mixed": -0.1}, {"mixed": 1.1}, {"rate": 0.0}, {"bins": 0}, {"tries": 0}, {"most": 0.0}):
        with pytest.raises(ConfigurationError, match="got BinWeighted"):
            BinWeighted(GroupMean(), **wrong)  # type: ignore[arg-type]
