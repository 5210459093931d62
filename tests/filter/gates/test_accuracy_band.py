"""The band by hand, against the binomial law, and what is no evidence."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from strop.errors import ConfigurationError
from strop.filter.gates.accuracy_band import AccuracyBand
from strop.types import SUCCESS, Origin
from tests.building import make_group


def test_the_band_has_both_its_ends() -> None:
    kept = [AccuracyBand()(make_group([1.0] * k + [0.0] * (8 - k))).group is not None for k in range(9)]
    assert kept == [False, False, True, True, True, True, True, False, False]
    tenths = [AccuracyBand(0.1, 0.3)(make_group([1.0] * k + [0.0] * (10 - k))).group is not None for k in range(5)]
    assert tenths == [False, True, True, True, False], "0.1 and 0.3 of ten are in, whatever their last bit"


@pytest.mark.parametrize(("rate", "probability"), [(0.1, 0.187), (0.5, 0.930), (0.9, 0.187)])
def test_how_often_a_task_is_kept(rate: float, probability: float) -> None:
    """All 256 ways in which 8 rollouts end, and the sum of the binomial law from 2 to 6."""
    gate, total = AccuracyBand(0.25, 0.75), 0.0
    for ends in product((0.0, 1.0), repeat=8):
        if gate(make_group(ends)).group is not None:
            total += rate ** sum(ends) * (1 - rate) ** (8 - sum(ends))
    assert total == pytest.approx(sum(comb(8, k) * rate**k * (1 - rate) ** (8 - k) for k in range(2, 7)))
    assert total == pytest.approx(probability, abs=5e-4)


def test_only_own_rollouts_that_count_are_counted_by_the_envs_outcome() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0, 0.0], failed=[3], pruned=[4])
    group.rollouts[1].origin = Origin.TEACHER
    assert AccuracyBand(0.5, 0.5)(group).group is group, "1 of 2"
    shaped = make_group([0.2, -0.5])
    for rollout in shaped.rollouts:
        rollout.rewards, rollout.facts[SUCCESS] = {"outcome": 1.0, "overlong": -1.0}, 1.0
    assert AccuracyBand()(shaped).reason == "more than 0.75 of its rollouts are right"


def test_both_ends_of_the_band_belong_to_it() -> None:
    """0.07 * 100 is a little more than 7 in doubles, and 0.29 * 100 a little less than 29."""
    assert AccuracyBand(0.07, 1.0)(make_group([1.0] * 7 + [0.0] * 93)).group is not None
    assert AccuracyBand(0.0, 0.29)(make_group([1.0] * 29 + [0.0] * 71)).group is not None


def test_it_says_which_side_of_the_band_a_group_is_on() -> None:
    assert AccuracyBand()(make_group([0.0, 0.0])).reason == "fewer than 0.25 of its rollouts are right"
    assert AccuracyBand()(make_group([1.0, 1.0])).reason == "more than 0.75 of its rollouts are right"
    assert AccuracyBand()(make_group([1.0, 0.0], failed=[0, 1])).reason == "no rollout counts"


def test_nonsense_is_refused() -> None:
    for low, high in ((-0.1, 0.5), (0.6, 0.5), (0.5, 1.1)):
        with pytest.raises(ConfigurationError, match=f"got {low} and {high}"):
            AccuracyBand(low, high)
