"""Means over seeds (strop.stats.intervals) and areas (strop.observe.report.compare_runs) against numbers worked by
hand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from strop.observe.metrics.tokens_to_target import area, tokens_to
from strop.observe.report.multi_run_chart import interval
from strop.stats.intervals import detectable, over_seeds, paired, share_over_seeds, student, wilson_low


def test_a_paired_interval_by_hand() -> None:
    # differences 0.1, 0.2, 0.3: mean 0.2, spread 0.1, half width 4.303 * 0.1 / sqrt(3)
    found = paired([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])
    assert found.mean == pytest.approx(0.2)
    assert found.high - found.mean == pytest.approx(4.303 * 0.1 / 3**0.5)
    assert found.mean - found.low == pytest.approx(4.303 * 0.1 / 3**0.5)


def test_pairs_cancel_what_a_seed_brings() -> None:
    found = paired([0.1, 0.5, 0.9], [0.05, 0.45, 0.85])
    assert found.low == pytest.approx(0.05) and found.high == pytest.approx(0.05)


def test_intervals() -> None:
    """Student with 2 degrees of freedom: 4.303 * .1 / sqrt(3)."""
    mean, low, high = over_seeds([0.4, 0.5, 0.6])
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - 4.303 * 0.1 / 3**0.5, 0.5 + 4.303 * 0.1 / 3**0.5))
    assert over_seeds([0.4]) == (0.4, None, None)
    assert share_over_seeds([0.0, 1.0])[1:] == (0.0, 1.0)
    assert interval((0.5, 0.25, 0.75)) == "50.0% (25.0 to 75.0)" and interval((0.1, None, None), True) == "+10.0%"


def test_areas() -> None:
    # from 0 to 100: mean 0.3 over 100 tokens; from 100 to 400: 0.5 over 300
    assert area(([0, 100, 400], [0.2, 0.4, 0.6])) == pytest.approx((0.3 * 100 + 0.5 * 300) / 400)
    assert area(([0, 10], [0.1, 0.5])) == pytest.approx(0.3)
    assert area(([0], [0.1])) == 0.1 and math.isnan(area(([], [])))
    early, late = [0.0, 0.8, 0.8], [0.0, 0.0, 0.8]
    assert area(([0, 1, 2], early)) > area(([0, 1, 2], late))


def test_tokens_to_a_target_lie_on_a_straight_line_between_two_values() -> None:
    found = [0.0, 10.0, 30.0, 40.0], [0.1, 0.2, 0.6, 0.5]
    assert tokens_to(found, 0.1) == 0 and tokens_to(found, 0.2) == 10
    assert tokens_to(found, 0.3) == pytest.approx(15) and tokens_to(found, 0.6) == 30
    assert tokens_to(found, 0.7) is None and tokens_to(([], []), 0.5) is None


def test_the_lower_bound_of_a_share_by_hand() -> None:
    """4 of 22 at z = 2: (4/22 + 2/22 - 2 sqrt(4/22 * 18/22 / 22 + 4 / 22^2 / 4)) / (1 + 4/22) = 0.0727."""
    assert wilson_low(4, 22, 2.0) == pytest.approx(
        (6 / 22 - 2 * math.sqrt(72 / 22**3 + 1 / 22**2)) / (26 / 22), abs=1e-12
    )
    assert wilson_low(0, 10) == 0.0 and wilson_low(0, 0) == 0.0 and 0.67 < wilson_low(8, 8) < 0.68


@pytest.mark.parametrize("seeds", [3, 6, 10])
def test_a_difference_that_is_called_detectable_is_found_in_four_of_five_trials(seeds: int) -> None:
    half = student(seeds - 1) / seeds**0.5  # of an interval where differences have a spread of 1
    drawn = np.random.default_rng(0).normal(detectable(half, seeds - 1), 1.0, (20_000, seeds))
    low = drawn.mean(1) - student(seeds - 1) * drawn.std(1, ddof=1) / seeds**0.5
    assert 0.75 < (low > 0).mean() < 0.82


def test_what_a_normal_interval_detects_by_hand() -> None:
    assert detectable(1.959964) == pytest.approx(1.959964 + 0.841621)
