"""Rollouts by utility at a price: no allotment of as many rollouts is better, and the mean is kept."""

from __future__ import annotations

import json
import random
from itertools import product

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.value.v0 import ByUtility, utility
from strop.types import Group
from tests.building import make_group


def asked(budget: ByUtility, probability: float) -> int:
    group = make_group([])
    group.predicted = (probability, 0.0)
    return budget.rollouts(group)


def expected_wrong_beside_right(count: int, probability: float) -> float:
    """By enumeration of all outcomes of `count` rollouts."""
    total = 0.0
    for outcome in product((0, 1), repeat=count):
        right = sum(outcome)
        total += probability**right * (1 - probability) ** (count - right) * (count - right) * (right > 0)
    return total


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_utility_is_the_expected_number_of_wrong_rollouts_with_a_right_sibling(probability: float) -> None:
    counts = np.arange(1, 9)
    assert utility(counts, probability) == pytest.approx(
        [expected_wrong_beside_right(int(n), probability) for n in counts]
    )


def test_at_a_tenth_every_further_rollout_gains_more_than_the_one_before() -> None:
    gains = np.diff(utility(np.arange(1, 6), 0.1))
    assert gains == pytest.approx([0.18, 0.333, 0.4626, 0.57195], abs=1e-9)


@pytest.mark.parametrize("price", [0.2, 0.35, 0.5, 0.65, 0.8])
def test_no_other_allotment_of_the_same_rollouts_is_worth_more(price: float) -> None:
    """All 5^4 allotments of 2 to 6 rollouts to four tasks."""
    probabilities = (0.1, 0.3, 0.5, 0.8)
    budget = ByUtility(mean=4, least=2, most=6)
    budget._price.first = price
    given = [asked(budget, probability) for probability in probabilities]
    worth = {n: [float(utility(np.array([n]), probability)[0]) for probability in probabilities] for n in range(2, 7)}

    def total(sizes: tuple[int, ...] | list[int]) -> float:
        return sum(worth[size][place] for place, size in enumerate(sizes))

    best = max(total(sizes) for sizes in product(range(2, 7), repeat=4) if sum(sizes) <= sum(given))
    assert total(given) == pytest.approx(best)


def test_rollouts_one_by_one_where_they_gain_most_would_be_worse() -> None:
    """20 rollouts of tasks of 0.1 and 0.6: the easier one always gains more by one more, and half of it all is lost."""
    sizes = [2, 2]
    for _ in range(16):
        gains = [worth(size + 1, p) - worth(size, p) for size, p in zip(sizes, (0.1, 0.6), strict=True)]
        sizes[int(np.argmax(gains))] += 1
    assert sizes == [2, 18]
    budget = ByUtility(mean=10, least=2, most=18)
    assert [asked(budget, probability) for probability in (0.1, 0.6)] == [18, 3], "at a price of 1/2"
    assert worth(2, 0.1) + worth(18, 0.6) < 0.55 * (worth(18, 0.1) + worth(2, 0.6))


def worth(count: int, probability: float) -> float:
    return float(utility(np.array([count]), probability)[0])


def test_the_mean_is_kept_over_many_groups() -> None:
    stream, budget = random.Random(0), ByUtility(mean=8, least=2, most=16)
    spent = []
    for _ in range(3000):
        spent.append(asked(budget, stream.random()))
        budget.observe(make_group([0.0] * spent[-1]))
    assert sum(spent[1000:]) / 2000 == pytest.approx(8, abs=0.2) and min(spent) == 2 and max(spent) == 16


def test_a_group_is_asked_for_once() -> None:
    budget = ByUtility()
    assert budget.rollouts(Group(0, make_group([]).task, [])) == asked(budget, 0.5), "nothing predicted: as at one half"
    assert asked(budget, 0.5) != asked(budget, 0.85)
    assert budget.rollouts(make_group([1.0])) == 0


def test_memory_and_metrics() -> None:
    first, second = ByUtility(), ByUtility()
    first.observe(make_group([0.0] * 16))
    second.restore(json.loads(json.dumps(first.state())))
    assert (
        second.learn([]) == first.learn([]) != ByUtility().learn([]) == {"rollouts_spread": 0.0, "rollout_price": 0.5}
    )
    assert first.learn([make_group([0.0] * 2), make_group([0.0] * 6)])["rollouts_spread"] == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [{"least": 0}, {"mean": 2.0}, {"most": 8}])
def test_budgets_that_leave_no_choice_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="least < mean < most"):
        ByUtility(**wrong)  # type: ignore[arg-type]
