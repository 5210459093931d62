"""AceCoder's pairs: the card's numbers, and every four programs of a few pass rates against the rule in plain words."""

from __future__ import annotations

from itertools import product

import pytest

from strop.errors import ConfigurationError
from strop.recipes.reward.acecoder import PassRatePairs


def test_the_numbers_of_the_card() -> None:
    rule = PassRatePairs()
    assert rule(["a", "b"], [1.0, 0.6]) == [(0, 1)] and rule(["a", "b"], [0.6, 1.0]) == [(1, 0)]
    assert rule(["a", "b"], [1.0, 0.61]) == rule(["a", "b"], [1.0, 0.0]) == rule(["a", "b"], [0.79, 0.1]) == []
    assert rule(["a", "b"], [0.8, 0.4]) == [(0, 1)]


def test_equal_programs_count_once_and_few_pairs_stay() -> None:
    rates = [0.5, 1.0, 1.0, 0.9, 0.2]
    assert PassRatePairs(most=9)(["a", "b", "b", "c", "d"], rates) == [(1, 0), (1, 4), (3, 0), (3, 4)]
    assert PassRatePairs()(["a", "b", "b", "c", "d"], rates) == [(1, 0), (1, 4), (3, 0)]
    assert PassRatePairs(most=1)(["a", "b", "c"], [1.0, 1.0, 0.5]) == [(0, 2)], "the first of equals"


def test_every_group_of_four() -> None:
    rule = PassRatePairs(most=99)
    for rates in product((0.0, 0.2, 0.5, 0.8, 1.0), repeat=4):
        expected = set()
        for i in range(4):
            for j in range(4):
                if rates[i] >= 0.8 and rates[i] - rates[j] > 0.39 and rates[j] > 0:
                    expected.add((i, j))
        assert set(rule(["a", "b", "c", "d"], rates)) == expected


@pytest.mark.parametrize("fields", [{"gap": 0.0}, {"gap": 0.9}, {"least": 1.1}, {"most": 0}])
def test_what_makes_no_pairs_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="0 < gap <= least <= 1 and most >= 1"):
        PassRatePairs(**fields)  # type: ignore[arg-type]
