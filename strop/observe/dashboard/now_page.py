"""Page *now*: current activity of a run, waiting parts, progress and remaining time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from markupsafe import Markup, escape

from strop.errors import StropError
from strop.observe.dashboard.gain_card import gain_card
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.examine import examine
from strop.observe.live.explain_stall import blocked_on, lines, sentence
from strop.observe.live.progress_bar import clock
from strop.observe.report.default_charts import choose
from strop.observe.report.svg_charts import cards, format_number, short
from strop.observe.report.templates import compiled
from strop.observe.run_files.run_info import read_summary

_EVERY = 2.0
_CHARTS = ("Reward", "Held-out accuracy", "Length")
_TEMPLATE = """\
<p class="eyebrow">{{ run.settings.get("recipe", "run") }}</p>
<h1>{{ run.name }}</h1>
<p class="soft">model {{ run.settings.get("model", "?") }} · seed {{ run.settings.get("seed", "?") }}
  {%- if run.envs %} · {{ run.envs }}{% endif %}
  <span class="state {{ run.state }}">{{ run.state }}</span></p>
<section class="card doing">
  <p class="says">{{ says }}</p>
  <div class="track" role="img" aria-label="step {{ run.step }} of {{ run.steps }}">
    <span class="way" style="left:0;width:{{ "{:.2f}".format(done) }}%"></span></div>
  <div class="scale"><span>step {{ "{:,}".format(run.step) }} of {{ "{:,}".format(run.steps) }}</span>
    <span>{{ left }}</span></div>
</section>
<section class="hero card">
{{ gain }}
<dl class="facts">
  {%- for name, value in metrics %}
  <div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>
  {%- endfor %}
</dl>
</section>
{%- for finding in findings %}
<p class="warning"><strong>{{ finding.name }}</strong>: {{ coded(finding.evidence) }}. What helps:
  {{ coded(finding.remedy) }}.</p>
{%- endfor %}
{{ charts }}
{%- if shares %}
<h2>Where the time of a step goes</h2>
<p class="lead">Mean of the last {{ run.times | length }} steps: what training did, and whether engines were asked for
  anything meanwhile.</p>
<div class="card fates">
  {%- for who, parts in shares %}
  <h3>{{ who }}</h3>
  <div class="stack">{% for name, share, kind in parts %}<i class="{{ kind }}" style="flex:{{ share }}"></i>
    {%- endfor %}</div>
  <div class="legend">{% for name, share, kind in parts %}
    <span><i class="{{ kind }}"></i>{{ "{:.0%}".format(share) }} <span class="soft">{{ name }}</span></span>
    {%- endfor %}</div>
  {%- endfor %}
</div>
{%- endif %}
{%- if groups %}
<h2>Groups in flight</h2>
<p class="lead">{{ run.status.num_running }} in all, the oldest first.</p>
<div class="card scrolls"><table class="rows">
  <tr><th>group</th><th>waits for</th><th>seconds</th><th>old</th></tr>
  {%- for number, subject, waited, old in groups %}
  <tr><td>{{ number }}</td><td>{{ subject }}</td><td>{{ waited }}</td><td>{{ old }}</td></tr>
  {%- endfor %}
</table></div>
{%- endif %}
{%- if told %}
<details id="more"><summary>In words</summary><pre>{{ told | join("\n") }}</pre></details>
{%- endif %}
"""


def now(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    run = run_index.run(asked.one("run"))
    return WatchPage(run.name, run.look(), lambda: _body(run, run_index.kept is None), run.name, _EVERY)


def _body(run: LiveRun, is_live: bool) -> Markup:
    status = run.status
    text = compiled(_TEMPLATE).render(
        run=run,
        says=_says(run),
        done=100 * run.step / run.steps if run.steps else 0.0,
        left=_left(run),
        gain=gain_card(*run.columns.ends("heldout")),
        findings=_findings(run, is_live),
        coded=_coded,
        metrics=_metrics(run),
        shares=_shares(run),
        groups=[_group(each) for each in status.get("groups", [])] if run.state in ("running", "silent") else [],
        charts=run.drawn("now", lambda: _charts(run)),
        told=lines(status) if status else [],
    )
    return Markup(text)


def _charts(run: LiveRun) -> Markup:
    chosen = choose(run.columns.by_name, run.columns.points).sought
    wanted = [chart for chart in chosen if chart.title in _CHARTS]
    return cards(wanted, (float(run.columns.first), float(run.columns.last))) if wanted else Markup("")


def _says(run: LiveRun) -> str:
    if run.state == "not begun":
        return "It has not begun to train: models are loaded, and tasks are looked at."
    ended = run.status.get("ended", "")
    said = sentence(run.status) if run.status else ""
    match run.state:
        case "running":
            return f"{said[0].upper()}{said[1:]}."
        case "silent":
            return f"It has not written its status for {run.age:.0f} s, so it may be stuck. Then: {said}."
        case "killed":
            return f"It was killed. Its last state: {said}."
        case "complete":
            return "It is complete."
        case _:
            how = f" ({ended})" if ended else ""
            return f"It stopped{how}. Go on with: strop train --resume {run.folder.path}"


def _findings(run: LiveRun, is_live: bool) -> list[dict[str, Any]]:
    """What was found at its end; while a run goes on, `strop doctor` looks through it whenever it is asked."""
    if is_live:
        found: list[dict[str, Any]] = [] if run.state == "running" else read_summary(run.folder).get("findings", [])
        return found
    try:
        return [asdict(finding) for finding in examine(run.folder)]
    except (sqlite3.Error, StropError):  # a ledger that cannot be read: the summary says so
        return []


def _coded(text: str) -> Markup:
    """Commands stand between backticks."""
    parts = [
        Markup("<code>{}</code>").format(each) if at % 2 else escape(each) for at, each in enumerate(text.split("`"))
    ]
    return Markup("").join(parts)


def _left(run: LiveRun) -> str:
    left = run.seconds_left
    return f"about {clock(left)} left" if left is not None else ""


def _metrics(run: LiveRun) -> list[tuple[str, str]]:
    value, status = run.columns.value, run.status
    memory = read_summary(run.folder).get("peak_rss_bytes") if run.state != "running" else None
    known: list[tuple[str, float | None, Callable[[float], str]]] = [
        ("Reward", value("reward"), format_number),
        ("Minutes", value("minutes"), format_number),
        ("Rollouts", value("rollouts"), format_number),
        ("Tokens generated", value("tokens_generated"), lambda count: short(int(count))),
        ("Tokens trained", value("tokens_trained"), lambda count: short(int(count))),
        ("Tokens per second", value("tokens_per_second"), format_number),
        ("Lag, mean", value("lag"), format_number),
        ("Lag, most", value("lag_max"), format_number),
        ("Groups in flight", status.get("num_running"), format_number),
        ("Groups kept", status.get("waiting"), format_number),
        ("Peak memory", memory, lambda count: f"{count / 1e9:.2f} GB"),
    ]
    return [(name, form(found)) for name, found, form in known if found is not None]


_Part = tuple[str, float, str]  # what is done, its share, and its colour


def _shares(run: LiveRun) -> list[tuple[str, list[_Part]]]:
    """Of the mean step, as training and as engines see it; runs of earlier versions tell nothing of engines."""
    names = ("seconds", "generate_seconds", "train_seconds", "engine_seconds", "host_seconds")
    total, waits, trains, asked, host = (sum(row.get(name, 0.0) for row in run.times) for name in names)
    if total <= 0:
        return []
    waits, host, asked = min(waits / total, 1.0), min(host / total, 1.0), min(asked / total, 1.0)
    trains = min(trains / total, 1.0 - waits)
    rest = ("publishes, evaluates, saves", max(1.0 - waits - trains, 0.0), "gated")
    if not any("engine_seconds" in row for row in run.times):
        return [("Training", [("waits for groups", waits, "waiting"), ("trains", trains, "trained"), rest])]
    training = [
        ("waits for engines", max(waits - host, 0.0), "waiting"),
        ("waits for environments and rewards", host, "failed"),
    ]
    engines = [("have requests", asked, "trained"), ("have nothing to do", 1.0 - asked, "waiting")]
    return [("Training", [*training, ("trains", trains, "trained"), rest]), ("Engines", engines)]


def _group(group: dict[str, Any]) -> tuple[int, str, str, str]:
    subject, waited = blocked_on(group)
    count = len(group["in_env"])
    inside = f" ({count} rollouts in it)" if count else ""
    return group["number"], f"{subject}{inside}", f"{waited:.0f}", f"{group['seconds']:.0f}"
