"""First page: all runs of the folder, with progress and results."""

from __future__ import annotations

from markupsafe import Markup

from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.report.svg_charts import format_number
from strop.observe.report.templates import compiled

_EVERY = 5.0
_TEMPLATE = """\
<p class="eyebrow">strop watch</p>
<h1>{{ title }}</h1>
{%- if runs %}
<div class="card scrolls"><table class="rows">
  <tr><th>run</th><th class="wide">recipe</th><th>state</th><th>step</th><th class="wide"></th><th>reward</th>
    <th>held-out</th><th class="wide">minutes</th><th class="wide"></th></tr>
  {%- for run in runs %}
  <tr><td><a{{ href("now", run=run.name) }}>{{ run.name }}</a></td>
    <td class="wide">{{ run.settings.get("recipe", "?") }}</td>
    <td><span class="state {{ run.state }}">{{ run.state }}</span></td>
    <td>{{ "{:,}".format(run.step) }} of {{ "{:,}".format(run.steps) }}</td>
    <td class="wide"><progress max="{{ [run.steps, 1] | max }}" value="{{ run.step }}"></progress></td>
    <td>{{ shown(run, "reward") }}</td><td>{{ shown(run, "heldout", True) }}</td>
    <td class="wide">{{ shown(run, "minutes") }}</td>
    <td class="wide"><a{{ href("rollouts", run=run.name) }}>rollouts</a></td></tr>
  {%- endfor %}
</table></div>
{%- else %}
<p class="lead">No runs here yet: start one with <code>strop train</code>.</p>
{%- endif %}
"""


def runs(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    found = list(run_index.runs().values())
    cursors = "|".join(f"{run.name}={run.look()}" for run in found)
    title = run_index.root.resolve().name
    text = compiled(_TEMPLATE)

    def body() -> Markup:
        return Markup(text.render(title=title, runs=found[::-1], href=run_index.href, shown=_shown))

    return WatchPage(title, cursors, body, every=_EVERY)


def _shown(run: LiveRun, name: str, is_share: bool = False) -> str:
    value = run.columns.value(name)
    return "–" if value is None else format_number(value, is_share)
