"""Line charts as SVG, rendered without a script; hovering only shows values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 340, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 8, 8, 20
_LETTERS = 5  # of a label that fit left of the grid
_MOST_POINTS = 240  # more than that cannot be told apart at this width


@dataclass(frozen=True)
class Point:
    """Value at a step, perhaps with its interval."""

    step: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Chart:
    """One curve and its format."""

    title: str
    points: tuple[Point, ...]
    note: str = ""
    is_share: bool = False
    from_zero: bool = True
    tone: str = "plain"  # the colour: plain or strong

    @property
    def last(self) -> str:
        return self.label(self.points[-1])

    def label(self, point: Point) -> str:
        text = format_number(point.value, self.is_share)
        if point.low is None or point.high is None:
            return text
        return f"{text} ({format_number(point.low, self.is_share)} to {format_number(point.high, self.is_share)})"


def format_number(value: float, is_share: bool = False) -> str:
    """A number as people read it."""
    if is_share:
        return f"{100 * value:.0f}%" if value in (0.0, 1.0) or 0.1 <= abs(value) <= 0.9 else f"{100 * value:.1f}%"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.1e}".replace("e-0", "e-")
    return f"{value:.3g}"


def short(count: int) -> str:
    """1.23M, 45.6k, 789."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}" if count / size < 999.5 else f"{count / size:.0f}{letter}"
    return str(count)


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most a screenful: neighbours are averaged, in equal bins."""
    size = math.ceil(len(points) / _MOST_POINTS)
    if size <= 1:
        return list(points)
    bins = [points[i : i + size] for i in range(0, len(points), size)]
    return [Point(b[-1].step, sum(p.value for p in b) / len(b), b[-1].low, b[-1].high) for b in bins]


def smoothed(values: Sequence[float]) -> list[float]:
    """A centred moving average, shorter towards the ends."""
    reach = max(1, len(values) // 24)
    windows = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers that cover low to high."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]  # digits, not decimals: values may be 1e-11


def cards(charts: Sequence[Chart], steps: tuple[float, float]) -> Markup:
    """A card per chart, all over the same range of steps."""
    card = Markup('<figure class="card"><figcaption><h3>{}</h3><output>{}</output></figcaption><p>{}</p>{}</figure>')
    shown = [card.format(chart.title, chart.last, chart.note, draw(chart, steps)) for chart in charts]
    return Markup('<div class="charts">{}</div>').format(Markup("").join(shown))


def draw(chart: Chart, steps: tuple[float, float]) -> Markup:
    """The chart over a range of steps as an SVG element, with its points for the read-out."""
    points = thinned(chart.points)
    marks = _vertical_ticks(chart, points)
    x = _scale(*steps, _LEFT, WIDTH - _RIGHT)
    y = _scale(marks[0], marks[-1], HEIGHT - _BOTTOM, _TOP)
    places = [[round(x(p.step), 1), round(y(p.value), 1), f"step {p.step:g}", chart.label(p)] for p in points]
    inside = _grid(chart, marks, y) + _steps(*steps, x) + _band(points, x, y) + _curve(points, x, y)
    return Markup(
        '<svg class="chart {tone}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}" data-points="{data}">'
        '{inside}<line class="cursor" y1="{top}" y2="{bottom}"></line>'
        '<circle class="dot" r="3.5" cx="{cx}" cy="{cy}"></circle></svg>'
    ).format(
        tone=chart.tone,
        width=WIDTH,
        height=HEIGHT,
        label=f"{chart.title}, last {chart.last}",
        data=json.dumps(places),
        inside=inside,
        top=_TOP,
        bottom=HEIGHT - _BOTTOM,
        cx=places[-1][0],
        cy=places[-1][1],
    )


def _vertical_ticks(chart: Chart, points: Sequence[Point]) -> list[float]:
    values = [v for p in points for v in (p.value, p.low, p.high) if v is not None]
    low, high = min(values), max(values)
    if chart.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # a part of the values: some figures are 1e-10 all along
        high = low + (abs(low) * 0.1 or 1.0)
    return ticks(low, high, 3)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _grid(chart: Chart, marks: Sequence[float], y: Callable[[float], float]) -> Markup:
    return Markup("".join(_line(y(mark)) + _named(_tick(chart, mark), y(mark)) for mark in marks))


def _line(y: float) -> str:
    return f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"></line>'


def _named(label: str, y: float) -> str:
    """A label left of the grid; a long one is narrowed, or its sign would lie outside the picture."""
    narrow = f' textLength="{_LEFT - 8}" lengthAdjust="spacingAndGlyphs"' if len(label) > _LETTERS else ""
    return f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end"{narrow}>{label}</text>'


def _tick(chart: Chart, mark: float) -> str:
    """Made of digits alone, so that nothing in it must be escaped."""
    if chart.is_share:
        return f"{100 * mark:g}%"
    return f"{mark / 1000:g}k" if abs(mark) >= 1000 else f"{mark:g}".replace("e-0", "e-")


def _steps(first: float, last: float, x: Callable[[float], float]) -> Markup:
    shown = [m for m in ticks(first, last, 4) if first <= m <= last and m == int(m)] if last > first else [first]
    places = [(min(x(mark), WIDTH - _RIGHT - 8), mark) for mark in shown]
    text = (f'<text x="{at:.1f}" y="{HEIGHT - 5}" text-anchor="middle">{mark:g}</text>' for at, mark in places)
    return Markup("".join(text))


def _band(points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float]) -> Markup:
    wide = [p for p in points if p.low is not None and p.high is not None]
    if len(wide) < 2:
        return Markup("")
    upper = [(p.step, p.high or 0.0) for p in wide]
    lower = [(p.step, p.low or 0.0) for p in reversed(wide)]
    return Markup(f'<path class="band" d="{_path([*upper, *lower], x, y)}Z"></path>')


def _curve(points: Sequence[Point], x: Callable[[float], float], y: Callable[[float], float]) -> Markup:
    """Few points as they are; many with their moving average over them."""
    raw = _path([(p.step, p.value) for p in points], x, y)
    is_noisy = len(points) > 24 and points[0].low is None
    if not is_noisy:
        places = [(x(p.step), y(p.value)) for p in points] if len(points) <= 24 else []
        dots = (f'<circle class="point" r="2" cx="{left:.1f}" cy="{top:.1f}"></circle>' for left, top in places)
        return Markup(f'<path class="curve" d="{raw}"></path>' + "".join(dots))
    mean = smoothed([p.value for p in points])
    over = _path([(p.step, value) for p, value in zip(points, mean, strict=True)], x, y)
    return Markup(f'<path class="raw" d="{raw}"></path><path class="curve" d="{over}"></path>')


def _path(places: Sequence[tuple[float, float]], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    return "M" + "L".join(f"{x(step):.1f} {y(value):.1f}" for step, value in places)
