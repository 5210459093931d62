"""The price by hand, that it keeps the mean it was given, and that what it buys is what a barrier would have bought."""

from __future__ import annotations

import json
from math import exp, log, sqrt

import numpy as np
import pytest

from strop.control.budgets.support.resource_price import Price
from strop.errors import ConfigurationError


def test_the_price_by_hand() -> None:
    price = Price(4.0, rate=0.1, first=2.0)
    assert price.value == 2.0
    price.pay(8)  # twice the mean
    assert price.value == pytest.approx(2 * exp(0.1))
    price.pay(0)
    assert price.value == pytest.approx(2.0)
    price.pay(2)
    assert price.value == pytest.approx(2 * exp(-0.05))


def test_it_does_not_matter_who_pays_first() -> None:
    there, back = Price(3.0), Price(3.0)
    for spent in (1, 7, 2, 5, 0):
        there.pay(spent)
    for spent in (0, 5, 2, 7, 1):
        back.pay(spent)
    assert there.value == back.value and there.state() == back.state()


@pytest.mark.parametrize("late", [0, 40])
def test_the_mean_spent_is_the_mean_asked_for(late: int) -> None:
    """Groups buy size / price; they pay when they are done, up to 40 groups later. The error is the bound, at most."""
    random, price, due = np.random.default_rng(0), Price(8.0), list[int]()
    for _ in range(4000):
        bought = min(max(round(float(random.choice([0.5, 4.0, 30.0])) / price.value), 1), 64)
        due.append(bought)
        if len(due) > late:
            price.pay(due.pop(0))
    paid, groups = price.state()["paid"], price.state()["groups"]
    assert paid / groups - 8 == pytest.approx(8 * log(price.value) / (0.05 * groups)), "what the docstring says"
    assert abs(paid / groups - 8) < 0.1


def test_with_a_steady_mix_it_finds_the_square_root_law() -> None:
    """Shares (1/2, 1/2), variances (.25, .01), mean 4: (6.67, 1.33), the price that a barrier would have computed."""
    price, deviations, owed = Price(4.0, rate=0.01), [sqrt(0.25), sqrt(0.01)], 0.0
    for group in range(6000):
        owed += deviations[group % 2] / price.value  # fractions are bought later
        price.pay(int(owed))
        owed -= int(owed)
    assert [deviation / price.value for deviation in deviations] == pytest.approx([20 / 3, 4 / 3], rel=0.02)


def test_what_is_worth_its_price_is_the_best_of_the_draw() -> None:
    """A chunk of 4 is given if its priority is at least the price: with one group in four allowed, the top quarter."""
    random, price, given = np.random.default_rng(1), Price(1.0, rate=0.01, first=0.5), list[tuple[float, bool]]()
    for _ in range(20000):
        priority = float(random.random())
        given.append((priority, priority >= price.value))
        price.pay(4 if given[-1][1] else 0)
    late = given[5000:]
    bought = [priority for priority, is_given in late if is_given]
    assert len(bought) / len(late) == pytest.approx(1 / 4, abs=0.01)
    assert np.mean([priority >= 0.75 for priority in bought]) > 0.9 and price.value == pytest.approx(0.75, abs=0.1)


def test_it_goes_on_where_it_was_and_refuses_nonsense() -> None:
    price, again = Price(2.0), Price(2.0)
    for spent in (3, 4):
        price.pay(spent)
    again.restore(json.loads(json.dumps(price.state())))
    again.pay(1)
    price.pay(1)
    assert again.value == price.value != 1.0
    for wrong in ((0.0, 0.1, 1.0), (1.0, 0.0, 1.0), (1.0, 0.1, 0.0)):
        with pytest.raises(ConfigurationError, match=f"got {wrong[0]}, {wrong[1]} and {wrong[2]}"):
            Price(*wrong)
