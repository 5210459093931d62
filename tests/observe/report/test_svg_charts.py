"""Charts: round ticks that cover the values, places that can be worked out by hand, and nothing unescaped."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.observe.report.multi_run_chart import MeanCurve, Panel
from strop.observe.report.multi_run_chart import draw as draw_panel
from strop.observe.report.svg_charts import HEIGHT, WIDTH, Chart, Point, draw, format_number, smoothed, thinned, ticks


def points_of(svg: str) -> list[list[object]]:
    found = re.search(r'data-points="([^"]*)"', svg)
    assert found
    places: list[list[object]] = json.loads(html.unescape(found[1]))
    return places


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.5, 1]),
        (0, 0.34, [0, 0.2, 0.4]),
        (22.9, 30.4, [22.5, 25, 27.5, 30, 32.5]),
        (-0.5, 1, [-0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round_and_cover(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 3) == pytest.approx(expected)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_always_cover(low: float, span: float) -> None:
    marks = ticks(low, low + span, 3)
    assert marks[0] <= low + 1e-6 * span and marks[-1] >= low + span - 1e-6 * span
    assert 2 <= len(marks) <= 6


def test_places_by_hand() -> None:
    """From 38 to 332 across steps 0 to 10, from 130 up to 8 across values 0 to 1."""
    svg = str(draw(Chart("Reward", (Point(0, 0.0), Point(5, 0.5), Point(10, 1.0))), (0, 10)))
    assert f'viewBox="0 0 {WIDTH} {HEIGHT}"' in svg
    assert points_of(svg) == [
        [38.0, 130.0, "step 0", "0"],
        [185.0, 69.0, "step 5", "0.5"],
        [332.0, 8.0, "step 10", "1"],
    ]
    assert 'd="M38.0 130.0L185.0 69.0L332.0 8.0"' in svg


@pytest.mark.parametrize("size", [1e-13, 1e-10, 1e-6, 1.0, 1e6])
def test_tiny_values_stay_inside_the_box_and_their_axis_names_them(size: float) -> None:
    """Values of -5, -6 and -5.5 times any size are drawn alike: between marks that cover them."""
    values = (-5.0 * size, -6.0 * size, -5.5 * size)
    chart = Chart("KL", tuple(Point(step, value) for step, value in enumerate(values)), from_zero=False)
    svg = str(draw(chart, (0, 2)))
    assert [place[1] for place in points_of(svg)] == [8.0, 130.0, 69.0]
    marks = [float(mark.replace("k", "e3")) for mark in re.findall(r"<text[^>]*anchor=.end[^>]*>([^<]*)<", svg)]
    assert (marks[0], marks[-1]) == pytest.approx((-6 * size, -5 * size))
    flat = str(draw(Chart("KL", (Point(0, size), Point(2, size)), from_zero=False), (0, 2)))
    assert all(8.0 <= float(str(place[1])) <= 130.0 for place in points_of(flat))


def test_a_long_label_is_narrowed_so_that_its_sign_is_seen() -> None:
    svg = str(draw(Chart("KL", (Point(0, -5.25e-11), Point(1, -5.5e-11)), from_zero=False), (0, 1)))
    labels = re.findall(r"<text([^>]*anchor=.end[^>]*)>(-5[^<]*)<", svg)
    assert labels and all("textLength" in shape for shape, _ in labels)
    assert "textLength" not in str(draw(Chart("Reward", (Point(0, 0.0), Point(1, 0.5))), (0, 1)))


def test_an_interval_is_a_band() -> None:
    chart = Chart("Accuracy", (Point(0, 0.2, 0.1, 0.3), Point(10, 0.6, 0.5, 0.7)), is_share=True)
    svg = str(draw(chart, (0, 10)))
    assert 'class="band"' in svg
    assert points_of(svg)[1][3] == "60% (50% to 70%)"
    assert 'class="band"' not in str(draw(Chart("Reward", (Point(0, 0.2), Point(10, 0.6))), (0, 10)))


@pytest.mark.parametrize("values", [[0.0], [3.0, 3.0], [-1.0, -1.0], [1e-12, 2e-12]])
def test_flat_and_single_values_can_be_drawn(values: list[float]) -> None:
    svg = str(draw(Chart("x", tuple(Point(i, v) for i, v in enumerate(values))), (0, len(values) - 1)))
    assert "nan" not in svg and "inf" not in svg


def test_many_points_become_a_screenful_of_the_same_mean() -> None:
    points = [Point(step, float(step % 7)) for step in range(10_000)]
    few = thinned(points)
    assert len(few) <= 240 and few[-1].step == 9_999
    assert sum(p.value for p in few) / len(few) == pytest.approx(3.0, abs=0.1)


def test_a_moving_average_by_hand() -> None:
    assert smoothed([0.0, 3.0, 6.0]) == [1.5, 3.0, 4.5]


def test_titles_are_escaped() -> None:
    svg = str(draw(Chart("<script>", (Point(0, 1.0),)), (0, 1)))
    assert "<script>" not in svg and "&lt;script&gt;" in svg


@pytest.mark.parametrize(
    ("value", "is_share", "expected"),
    [
        (0.714, True, "71%"),
        (0.031, True, "3.1%"),
        (1.0, True, "100%"),
        (0.0, False, "0"),
        (12345.6, False, "12,346"),
        (0.02516, False, "0.0252"),
        (0.00012, False, "1.2e-4"),
    ],
)
def test_metrics_as_people_read_them(value: float, is_share: bool, expected: str) -> None:
    assert format_number(value, is_share) == expected


def test_a_line_that_stays_where_it_is_stands_in_the_middle() -> None:
    """A quarter of its value is room on both sides; from 0 on where it is 0."""
    half = draw_panel(Panel("Share", "", (MeanCurve("a", ((0.0, 0.5, 0.5, 0.5), (1.0, 0.5, 0.5, 0.5))),), True), ["a"])
    assert re.findall(r'text-anchor="end">([^<]*)<', half)[::2] == ["30%", "50%", "70%"]
    nothing = draw_panel(Panel("Lag", "", (MeanCurve("a", ((0.0, 0.0, 0.0, 0.0),)),)), ["a"])
    assert re.findall(r'text-anchor="end">([^<]*)<', nothing)[0] == "0"
