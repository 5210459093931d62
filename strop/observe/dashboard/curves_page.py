"""Page *curves*: all metrics of one run, or the main metrics of several, overlaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from strop.observe.dashboard.arms import arms_of
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.metrics.tokens_to_target import Curve
from strop.observe.report.compare_runs import mean_line
from strop.observe.report.default_charts import CURVES, choose
from strop.observe.report.default_charts import Curve as SoughtCurve
from strop.observe.report.multi_run_chart import MeanCurve, Panel
from strop.observe.report.multi_run_chart import cards as panel_cards
from strop.observe.report.svg_charts import cards
from strop.observe.report.templates import compiled

_EVERY = 10.0
_ALONGS = {"step": "", "tokens": "tokens_generated", "minutes": "minutes"}  # what curves may run along, and its metric
_TEMPLATE = """\
<h1>Curves</h1>
{%- if others | length > 1 and is_live %}
<form class="card choice" action="curves">
  <fieldset><legend>runs</legend>{% for name in others %}
    <label><input type="checkbox" name="run" value="{{ name }}"{{ " checked" if name in chosen }}>{{ name }}</label>
  {%- endfor %}</fieldset>
  <label>along <select name="along">{% for name in alongs %}
    <option{{ " selected" if name == along }}>{{ name }}</option>{% endfor %}</select></label>
  <button>show</button>
</form>
{%- endif %}
<p class="lead">{{ words }}</p>
{{ body }}
"""
_MORE = """\
{{ sought }}{% if envs %}<h2>Held-out accuracy by environment</h2>{{ envs }}{% endif %}
{%- if others %}<h2>All other metrics</h2>{{ others }}{% elif count -%}
<p class="lead more"><a{{ more }}>All other metrics ({{ count }})</a></p>{% endif %}
"""


def curves(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    known = run_index.runs()
    chosen = [run_index.run(name) for name in asked.get("run", [""])]
    cursor = "|".join(f"{run.name}={run.look()}" for run in chosen)
    along = asked.one("along") if asked.one("along") in _ALONGS else "step"

    def body() -> Markup:
        is_one = len(chosen) == 1 and along == "step"
        shown = _of_one(run_index, chosen[0], bool(asked.one("all"))) if is_one else overlaid(arms_of(chosen), along)
        words = "By optimizer step. Where a curve is noisy, the strong line is its moving average."
        if not is_one:
            words = f"Along {along}s." if along == "step" else f"Along {along}."
            words += " Runs that differ in their seed alone are one line; its band is the 95% interval over seeds."
        names = {run.name for run in chosen}
        given = {
            "others": list(known),
            "chosen": names,
            "alongs": list(_ALONGS),
            "along": along,
            "is_live": run_index.kept is None,
        }
        return Markup(compiled(_TEMPLATE).render(words=words, body=shown, **given))

    return WatchPage("curves", cursor, body, chosen[0].name, _EVERY)


def _of_one(run_index: RunIndex, run: LiveRun, with_others: bool) -> Markup:
    chosen = choose(run.columns.by_name, run.columns.points)
    steps = (float(run.columns.first), float(run.columns.last))
    text = compiled(_MORE).render(
        sought=cards(chosen.sought, steps),
        envs=cards(chosen.envs, steps) if chosen.envs else "",
        others=cards(chosen.others, steps) if with_others and chosen.others else "",
        count=len(chosen.others),
        more=run_index.href("curves", run=run.name, all=1),
    )
    return Markup(text)


def overlaid(arms: Mapping[str, Sequence[LiveRun]], along: str) -> Markup:
    """The curves that people look for, a line per arm."""
    panels = [Panel(c.title, c.note, _lines(arms, c, along), c.is_share) for c in CURVES]
    return panel_cards([panel for panel in panels if any(line.points for line in panel.lines)], list(arms))


def _lines(arms: Mapping[str, Sequence[LiveRun]], sought: SoughtCurve, along: str) -> tuple[MeanCurve, ...]:
    """The first of its metrics that any of the runs has."""
    runs = [run for each in arms.values() for run in each]
    metric = next((name for name in sought.metrics if any(run.columns.points(name) for run in runs)), "")
    curves = {name: [_curve(run, metric, along) for run in each] for name, each in arms.items()}
    return tuple(mean_line(name, each, sought.is_share, metric != "heldout") for name, each in curves.items())


def _curve(run: LiveRun, metric: str, along: str) -> Curve:
    points = run.columns.points(metric)
    steps = [point.step for point in points]
    total = run.columns.by_name.get(_ALONGS[along])
    return (total.at(steps) if total else steps), [point.value for point in points]
