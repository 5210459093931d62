"""The curve of accuracy over hints: its closed form by hand, and fits against a plain search."""

from __future__ import annotations

import math
from itertools import product

import pytest

from strop.recipes.guide.seele import HintCurve, fitted


def test_it_is_turned_round_exactly() -> None:
    for curve in (HintCurve(8, -0.5), HintCurve(3, -0.9, 0.2), HintCurve(20, 0.1, 0.49)):
        assert curve(curve.place(0.5)) == pytest.approx(0.5)
    assert HintCurve(10, -0.3, 0.2).place(0.5) == pytest.approx(0.3 - math.log(0.8 / 0.3 - 1) / 10)
    assert HintCurve(10, -0.3, 0.2).place(0.5) == pytest.approx(0.2489, abs=1e-4)


def test_an_easier_task_needs_less_by_as_much() -> None:
    assert HintCurve(7, -0.6, 0.1).place(0.5) - HintCurve(7, -0.45, 0.1).place(0.5) == pytest.approx(0.15)


def test_shares_stay_within_bounds() -> None:
    assert HintCurve(8, -0.5, 0.5).share(0.5) == 0.0 == HintCurve(8, 0.3).share(0.5), (
        "right often enough without a hint"
    )
    assert HintCurve(8, -1.4).share(0.5) == 1.0 and HintCurve(8, -0.25).share(0.5) == 0.25


def test_a_fit_finds_the_curve_that_made_its_points() -> None:
    true = HintCurve(9.0, -0.55, 0.1)
    found = fitted([(share, true(share), 8.0) for share in (0.0, 0.25, 0.5, 0.75, 1.0)])
    assert found.share(0.5) == pytest.approx(true.share(0.5), abs=0.01)
    assert all(found(share / 10) == pytest.approx(true(share / 10), abs=0.01) for share in range(11))


def errors(curve: HintCurve, points: list[tuple[float, float, float]]) -> float:
    return sum(weight * (curve(share) - right) ** 2 for share, right, weight in points) / sum(w for *_, w in points)


def test_no_curve_of_a_plain_search_is_better() -> None:
    points = [(0.0, 0.25, 8.0), (0.5, 0.125, 8.0), (0.75, 0.875, 16.0)]
    found = errors(fitted(points), points)
    grid = product((1, 2, 4, 8, 16, 32, 64), [ease / 20 for ease in range(-30, 11)], [g / 20 for g in range(19)])
    assert found <= min(errors(HintCurve(*each), points) for each in grid) + 1e-3


def test_weights_decide_between_rounds_that_disagree() -> None:
    often = fitted([(0.5, 0.9, 30.0), (0.5, 0.1, 1.0)])(0.5)
    assert often == pytest.approx((0.9 * 30 + 0.1) / 31, abs=0.02)


def test_few_points_move_the_usual_curve_the_right_way() -> None:
    assert fitted([(0.5, 0.5, 8.0)]).share(0.5) == pytest.approx(0.5, abs=1e-3)
    less, more = fitted([(0.5, 1.0, 8.0)]).share(0.5), fitted([(0.5, 0.0, 8.0)]).share(0.5)
    assert less < 0.4 and more > 0.6
    assert fitted([(0.0, 0.9, 8.0), (0.5, 0.9, 8.0)]).share(0.5) == 0.0
