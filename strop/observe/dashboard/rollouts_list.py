"""Page *rollouts*: all rollouts, filtered and sorted; pages start behind a cursor, so that new rows move nothing."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage, address
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.report.svg_charts import format_number
from strop.observe.report.templates import compiled, visible
from strop.storage.ledger.browser import ORDERS, Between, LedgerBrowser, Listed, RowPlace, Wanted
from strop.types import Origin, Outcome

_COUNT = 50  # rollouts of a page
_FATES = ("waiting", "gated", "failed", "trained")
_CHOICES: dict[str, tuple[str, ...]] = {
    "fate": _FATES,
    "origin": tuple(each.value for each in Origin),
    "outcome": tuple(each.value for each in Outcome),
}
_SPANS = ("reward", "length", "version")
_TEMPLATE = """\
<h1>Rollouts</h1>
{%- if kept %}
<p class="lead">{{ kept.words }}</p>
{%- else %}
<form class="card choice" action="rollouts">
  <input type="hidden" name="run" value="{{ run.name }}">
  <label>tasks <select name="kind"><option value="">all</option>{% for name in kinds %}
    <option{{ " selected" if name == asked.one("kind") }}>{{ name }}</option>{% endfor %}</select></label>
  {%- for name, values in choices.items() %}
  <label>{{ name }} <select name="{{ name }}"><option value="">all</option>{% for value in values %}
    <option{{ " selected" if value == asked.one(name) }}>{{ value }}</option>{% endfor %}</select></label>
  {%- endfor %}
  {%- for name in spans %}
  <label>{{ name }} <input type="number" step="any" name="{{ name }}_from" value="{{ asked.one(name + "_from") }}"
    placeholder="from" aria-label="{{ name }} from"> <input type="number" step="any" name="{{ name }}_to"
    value="{{ asked.one(name + "_to") }}" placeholder="to" aria-label="{{ name }} to"></label>
  {%- endfor %}
  <label>task <input name="task" size="17" value="{{ asked.one("task") }}" placeholder="id"></label>
  <label>sort by <select name="sort">{% for name in orders %}
    <option{{ " selected" if name == asked.one("sort") }}>{{ name }}</option>{% endfor %}</select></label>
  <label><input type="checkbox" name="rising" value="1"{{ " checked" if asked.one("rising") }}>smallest first</label>
  <button>show</button>
</form>
{%- endif %}
{%- if rows %}
<div class="card scrolls"><table class="rows" id="rollouts">
  <tr><th>rollout</th><th class="number">reward</th><th class="number">tokens</th><th class="number">version</th>
    <th>fate</th><th>task</th><th>asked</th>
    <th>completion, its end</th></tr>
  {%- for row in rows %}
  <tr><td><a{{ href("rollout", run=run.name, id=row.id) }}>{{ row.id }}</a></td>
    <td class="number" data-name="reward">{{ format_number(row.reward) if row.reward is not none else "–" }}</td>
    <td class="number" data-name="tokens">{{ "{:,}".format(row.tokens) }}</td>
    <td class="number" data-name="version">{{ row.version }}</td>
    <td>{{ row.fate }}{% if row.outcome not in ("finished", row.fate) %}, {{ row.outcome }}{% endif -%}
      {% if row.origin != "policy" %}, {{ row.origin }}{% endif %}</td>
    <td><a{{ href("rollouts", run=run.name, task=row.task) }}>
      {{- visible(row.source) }} {{ row.level }}</a></td>
    <td class="text">{{ visible(row.asked) }}</td><td class="text"><code>{{ visible(row.completion) }}</code></td></tr>
  {%- endfor %}
</table></div>
{%- else %}
<p class="lead">No such rollouts.</p>
{%- endif %}
<p class="pager">{% if first %}<a href="{{ first }}">first page</a>{% endif -%}
  {% if next %}<a id="next" href="{{ next }}">next {{ count }}</a>{% endif %}</p>
"""


def rollouts(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    run = run_index.run(asked.one("run"))
    return WatchPage("rollouts", "", lambda: _body(run_index, run, asked), run.name)


def _body(run_index: RunIndex, run: LiveRun, asked: PageQuery) -> Markup:
    if not run.folder.ledger.is_file():
        return Markup('<h1>Rollouts</h1><p class="lead">Nothing was tried yet.</p>')
    order = asked.one("sort") if asked.one("sort") in ORDERS else "newest"
    with LedgerBrowser(run.folder.ledger) as ledger:
        kinds = run.kinds.look(ledger)
        if run_index.kept is None:
            wanted = _wanted(asked, kinds)
            found = ledger.page(wanted, order, bool(asked.one("rising")), _after(asked), _COUNT + 1)
        else:
            found = ledger.named(run_index.kept.ids)
    here = {name: values for name, values in asked.items() if name != "after"}
    text = compiled(_TEMPLATE).render(
        run=run,
        kept=run_index.kept,
        asked=asked,
        kinds=list(kinds),
        choices=_CHOICES,
        spans=_SPANS,
        orders=list(ORDERS),
        rows=found[:_COUNT],
        count=_COUNT,
        next=_next(found, here),
        first=address("rollouts", **here) if asked.one("after") else "",
        **{"href": run_index.href, "format_number": format_number, "visible": visible},
    )
    return Markup(text)


def _next(found: list[Listed], here: dict[str, Any]) -> str:
    if len(found) <= _COUNT:
        return ""
    key, row = found[_COUNT - 1].place
    return address("rollouts", **here, after=f"{key!r},{row}")


def _after(asked: PageQuery) -> RowPlace | None:
    key, _, row = asked.one("after").partition(",")
    try:
        return RowPlace(float(key), int(row))
    except ValueError:
        return None


def _wanted(asked: PageQuery, kinds: dict[str, tuple[str, int]]) -> Wanted:
    reward, length, version = (Between(asked.number(f"{n}_from"), asked.number(f"{n}_to")) for n in _SPANS)
    task, fate, origin, outcome = (asked.one(name) for name in ("task", "fate", "origin", "outcome"))
    return Wanted(task, kinds.get(asked.one("kind")), fate, origin, outcome, reward, length, version)
