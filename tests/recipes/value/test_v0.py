"""Attempts by utility at a price: no allotment of as many attempts is better, and the mean is kept."""

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


def asked(budget: ByUtility, chance: float) -> int:
    group = make_group([])
    group.foreseen = (chance, 0.0)
    return budget.attempts(group)


def expected_wrong_beside_right(count: int, chance: float) -> float:
    """By enumeration of all outcomes of `count` attempts."""
    total = 0.0
    for outcome in product((0, 1), repeat=count):
        right = sum(outcome)
        total += chance**right * (1 - chance) ** (count - right) * (count - right) * (right > 0)
    return total


@pytest.mark.parametrize("chance", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_utility_is_the_expected_number_of_wrong_attempts_with_a_right_sibling(chance: float) -> None:
    counts = np.arange(1, 9)
    assert utility(counts, chance) == pytest.approx([expected_wrong_beside_right(int(n), chance) for n in counts])


def test_at_a_tenth_every_further_attempt_gains_more_than_the_one_before() -> None:
    gains = np.diff(utility(np.arange(1, 6), 0.1))
    assert gains == pytest.approx([0.18, 0.333, 0.4626, 0.57195], abs=1e-9)


@pytest.mark.parametrize("price", [0.2, 0.35, 0.5, 0.65, 0.8])
def test_no_other_allotment_of_the_same_attempts_is_worth_more(price: float) -> None:
    """All 5^4 allotments of 2 to 6 attempts to four tasks."""
    chances = (0.1, 0.3, 0.5, 0.8)
    budget = ByUtility(mean=4, least=2, most=6)
    budget._price.first = price
    given = [asked(budget, chance) for chance in chances]
    worth = {n: [float(utility(np.array([n]), chance)[0]) for chance in chances] for n in range(2, 7)}

    def total(sizes: tuple[int, ...] | list[int]) -> float:
        return sum(worth[size][place] for place, size in enumerate(sizes))

    best = max(total(sizes) for sizes in product(range(2, 7), repeat=4) if sum(sizes) <= sum(given))
    assert total(given) == pytest.approx(best)


def test_attempts_one_by_one_where_they_gain_most_would_be_worse() -> None:
    """20 attempts at tasks of 0.1 and 0.6: the easier one always gains more by one more, and half of it all is lost."""
    sizes = [2, 2]
    for _ in range(16):
        gains = [worth(size + 1, p) - worth(size, p) for size, p in zip(sizes, (0.1, 0.6), strict=True)]
        sizes[int(np.argmax(gains))] += 1
    assert sizes == [2, 18]
    budget = ByUtility(mean=10, least=2, most=18)
    assert [asked(budget, chance) for chance in (0.1, 0.6)] == [18, 3], "at a price of 1/2"
    assert worth(2, 0.1) + worth(18, 0.6) < 0.55 * (worth(18, 0.1) + worth(2, 0.6))


def worth(count: int, chance: float) -> float:
    return float(utility(np.array([count]), chance)[0])


def test_the_mean_is_kept_over_many_groups() -> None:
    stream, budget = random.Random(0), ByUtility(mean=8, least=2, most=16)
    spent = []
    for _ in range(3000):
        spent.append(asked(budget, stream.random()))
        budget.observe(make_group([0.0] * spent[-1]))
    assert sum(spent[1000:]) / 2000 == pytest.approx(8, abs=0.2) and min(spent) == 2 and max(spent) == 16


def test_a_group_is_asked_for_once() -> None:
    budget = ByUtility()
    assert budget.attempts(Group(0, make_group([]).task, [])) == asked(budget, 0.5), "nothing foreseen: as at one half"
    assert asked(budget, 0.5) != asked(budget, 0.85)
    assert budget.attempts(make_group([1.0])) == 0


def test_memory_and_figures() -> None:
    first, second = ByUtility(), ByUtility()
    first.observe(make_group([0.0] * 16))
    second.restore(json.loads(json.dumps(first.state())))
    assert (
        second.learn([]) == first.learn([]) != ByUtility().learn([]) == {"attempts_spread": 0.0, "attempt_price": 0.5}
    )
    assert first.learn([make_group([0.0] * 2), make_group([0.0] * 6)])["attempts_spread"] == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [{"least": 0}, {"mean": 2.0}, {"most": 8}])
def test_budgets_that_leave_no_choice_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="least < mean < most"):
        ByUtility(**wrong)  # type: ignore[arg-type]
