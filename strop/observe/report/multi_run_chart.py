"""Charts of several arms: curves over generated tokens, with their spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from strop.observe.report.layout import ONE_FILE_HEAD, STYLE
from strop.observe.report.svg_charts import format_number, ticks
from strop.observe.report.templates import compiled

WIDTH, HEIGHT = 420, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 10, 24
_COLOURS = (
    ("#a8501c", "#f09a5f"), ("#0c7a6b", "#4ecbb6"), ("#3b5bb5", "#8fa8f5"), ("#8a3a86", "#d88ad4"),
    ("#7a6a10", "#d6c04a"), ("#b23a31", "#f0827a"), ("#3f6f2a", "#8fca72"), ("#555049", "#b5ada0"),
)  # light, dark  # fmt: skip


@dataclass(frozen=True)
class MeanCurve:
    """One arm's curve: tokens, and mean, low and high over seeds at each."""

    name: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class Panel:
    """One metric of all arms."""

    title: str
    note: str
    lines: tuple[MeanCurve, ...]
    is_share: bool = False


@dataclass(frozen=True)
class Row:
    """One arm's line of the table; intervals are None where one seed has no spread."""

    name: str
    seeds: int
    before: float
    after: tuple[float, float | None, float | None]
    change: tuple[float, float | None, float | None] | None  # against the first arm, seed by seed
    tokens: float  # generated, mean over seeds
    minutes: float


def write_page(path: Path, title: str, words: str, rows: Sequence[Row], panels: Sequence[Panel]) -> Path:
    """Write the page; nothing in it is fetched, and there is no script."""
    names = [row.name for row in rows]
    text = compiled(_TEMPLATE).render(
        title=title,
        words=words,
        table=table(rows),
        panels=cards(panels, names),
        style=Markup(STYLE + STYLE_OF_LINES),
    )
    path.write_text(text)
    return path


def table(rows: Sequence[Row]) -> Markup:
    """A line per arm."""
    names = [row.name for row in rows]
    colour = partial(colour_of, names=names)
    return Markup(compiled(_TABLE).render(rows=rows, colour=colour, interval=interval))


def interval(found: tuple[float, float | None, float | None], is_signed: bool = False) -> str:
    """A mean and its interval, in percent."""
    mean, low, high = found
    sign = "+" if is_signed else ""
    text = f"{100 * mean:{sign}.1f}%"
    return text if low is None or high is None else f"{text} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"


def colour_of(name: str, names: Sequence[str]) -> str:
    """The class that gives a line its colour, and its key."""
    return f"c{names.index(name) % len(_COLOURS)}"


def cards(panels: Sequence[Panel], names: Sequence[str]) -> Markup:
    """A card per panel; `names` of all lines decide their colours."""
    return Markup(
        compiled(_CARDS).render(
            panels=panels, draw=lambda panel: draw(panel, names), colour=lambda name: colour_of(name, names)
        )
    )


def draw(panel: Panel, names: Sequence[str]) -> Markup:
    """All lines of a panel as one SVG."""
    points = [point for line in panel.lines for point in line.points]
    marks = ticks(*_range(points), 4)
    end = max((point[0] for point in points), default=1.0) or 1.0
    x, y = _scale(0.0, end, _LEFT, WIDTH - _RIGHT), _scale(marks[0], marks[-1], HEIGHT - _BOTTOM, _TOP)
    grid = [_grid(mark, y, panel.is_share) for mark in marks]
    axis = [_tick(mark, x) for mark in ticks(0.0, end, 4) if mark <= end * 1.001]
    drawn = [_line(line, colour_of(line.name, names), x, y, panel.is_share) for line in panel.lines]
    return Markup('<svg class="overlay" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, panel.title, Markup("").join([*grid, *axis, *drawn])
    )


def _range(points: Sequence[tuple[float, float, float, float]]) -> tuple[float, float]:
    """What the axis shows: all means, and of their intervals as much as leaves the means readable."""
    means = [point[1] for point in points] or [0.0]
    low, high = min(means), max(means)
    room = max(high - low, 0.25 * max(abs(low), abs(high))) or 1.0
    if high - low <= 1e-9:  # one value: in the middle, and from 0 on where it is none below
        return (low - room if low < 0 else max(low - room, 0.0)), high + room
    low = max(min((point[2] for point in points), default=low), low - room)
    high = min(max((point[3] for point in points), default=high), high + room)
    return low, high


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / ((high - low) or 1.0) * (end - start)


def _grid(mark: float, y: Callable[[float], float], is_share: bool) -> Markup:
    words = f"{100 * mark:g}%" if is_share else f"{mark:g}"
    return Markup(
        '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"></line>'
        '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
    ).format(_LEFT, WIDTH - _RIGHT, y(mark), y(mark), _LEFT - 6, y(mark) + 3.5, words)


def _tick(mark: float, x: Callable[[float], float]) -> Markup:
    words = f"{mark / 1000:g}k" if mark >= 1000 else f"{mark:g}"
    place = min(x(mark), WIDTH - _RIGHT - 8)
    return Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(place, HEIGHT - 6, words)


def _line(
    line: MeanCurve, colour: str, x: Callable[[float], float], y: Callable[[float], float], is_share: bool
) -> Markup:
    if not line.points:
        return Markup("")
    upper = [(x(p[0]), max(y(p[3]), float(_TOP))) for p in line.points]  # an interval may leave the axis
    lower = [(x(p[0]), min(y(p[2]), float(HEIGHT - _BOTTOM))) for p in reversed(line.points)]
    middle = [(x(p[0]), y(p[1])) for p in line.points]
    last = format_number(line.points[-1][1], is_share)
    return Markup(
        '<g class="{}"><title>{}, last {}</title>'
        '<path class="band" d="{}Z"></path><path class="curve" d="{}"></path></g>'
    ).format(colour, line.name, last, _path([*upper, *lower]), _path(middle))


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _coloured(shade: int) -> str:
    return "".join(f".c{index} {{ --line: {pair[shade]}; }}\n" for index, pair in enumerate(_COLOURS))


STYLE_OF_LINES = (
    _coloured(0) + f"@media (prefers-color-scheme: dark) {{\n{_coloured(1)}}}\n"
    "svg.overlay { display: block; width: 100%; height: auto; }\n"
    ".panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(420px, 1fr)); gap: 14px; }\n"
    ".panels { margin-top: 14px; }\n"
    "@media (max-width: 760px) { .panels { grid-template-columns: 1fr; } svg.overlay text { font-size: 12px; } }\n"
    ".key { display: inline-block; width: 14px; height: 4px; border-radius: 2px; background: var(--line); }\n"
    ".key { margin: 0 8px 3px 0; }\n"
    ".keys span { white-space: nowrap; margin-right: 16px; }\n"
    ".results { padding: 12px 20px; margin-top: 24px; overflow-x: auto; }\n"
    ".results .shares td:first-child, .results .shares th:first-child { text-align: left; }\n"
)


_TABLE = """\
<div class="card results">
<table class="shares">
<tr><th>arm</th><th>seeds</th><th>held-out before</th><th>after (95% over seeds)</th>
  <th>against {{ rows[0].name }}</th><th>tokens</th><th>minutes</th></tr>
{%- for row in rows %}
<tr><td><i class="key {{ colour(row.name) }}"></i>{{ row.name }}</td><td>{{ row.seeds }}</td>
  <td>{{ "{:.1%}".format(row.before) }}</td><td>{{ interval(row.after) }}</td>
  <td>{{ interval(row.change, True) if row.change else "–" }}</td><td>{{ "{:,.0f}".format(row.tokens) }}</td>
  <td>{{ "{:.1f}".format(row.minutes) }}</td></tr>
{%- endfor %}
</table>
</div>
"""
_CARDS = """\
<div class="panels">
{%- for panel in panels %}
<figure class="card">
<figcaption><h3>{{ panel.title }}</h3></figcaption>
<p>{{ panel.note }}</p>
{{ draw(panel) }}
<p class="keys">{% for line in panel.lines %}<span><i class="key {{ colour(line.name) }}"></i>{{ line.name }}</span>
{% endfor %}</p>
</figure>
{%- endfor %}
</div>
"""
_TEMPLATE = (
    ONE_FILE_HEAD
    + """\
<title>{{ title }} · strop</title>
<style>{{ style }}</style>
</head>
<body>
<main>
<p class="eyebrow">strop compare</p>
<h1>{{ title }}</h1>
<p class="soft">{{ words }}</p>
{{ table }}
<h2>Curves</h2>
<p class="lead">Over generated tokens. Lines are means over seeds, bands 95% intervals.</p>
{{ panels }}
</main>
</body>
</html>
"""
)
