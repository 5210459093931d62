"""Page *compare*: runs side by side, with paired differences by seed, and by task where both have the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from strop.observe.dashboard.arms import arms_of
from strop.observe.dashboard.curves_page import overlaid
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.report.multi_run_chart import Row, table
from strop.observe.report.templates import compiled
from strop.stats.intervals import Difference, over_seeds, paired, share_over_seeds
from strop.storage.ledger.browser import LedgerBrowser

_EVERY = 10.0
_GROUPS = 4000  # the last ones of each run, whose tasks are compared
_FEWEST = 10  # tasks that an interval can be taken over
_TEMPLATE = """\
<h1>Compare</h1>
<form class="card choice" action="compare">
  <fieldset><legend>runs</legend>{% for name in known %}
    <label><input type="checkbox" name="run" value="{{ name }}"{{ " checked" if name in chosen }}>{{ name }}</label>
  {%- endfor %}</fieldset>
  <button>compare</button>
</form>
{%- if rows %}
<p class="lead">Held-out accuracy as it was measured last. Differences are taken seed by seed, against the first.</p>
{{ table }}
{%- if tasks %}
<h2>The same tasks</h2>
<p class="lead">Mean reward of the policy's own rollouts of tasks that both tried, among the last
  {{ "{:,}".format(groups) }} groups of each; differences are taken task by task.</p>
<div class="card results"><table class="shares" id="tasks">
  <tr><th>run</th><th>against</th><th>tasks</th><th>difference (95% over tasks)</th></tr>
  {%- for run, first, count, found in tasks %}
  <tr><td>{{ run }}</td><td>{{ first }}</td><td>{{ "{:,}".format(count) }}</td>
    <td>{% if found %}{{ "{:+.3f} ({:+.3f} to {:+.3f})".format(found.mean, found.low, found.high) }}
    {%- else %}too few tasks in common{% endif %}</td></tr>
  {%- endfor %}
</table></div>
{%- endif %}
<h2>Curves</h2>
{{ curves }}
{%- else %}
<p class="lead">Choose two runs or more that have measured held-out accuracy.</p>
{%- endif %}
"""


def compare(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    known = run_index.runs()
    chosen = [run_index.run(name) for name in asked.get("run", list(known)[-2:])]
    cursor = "|".join(f"{run.name}={run.look().rsplit(':', 2)[0]}" for run in chosen)

    def body() -> Markup:
        arms = _arms(chosen)
        rows = rows_of(arms) if len(chosen) > 1 else []
        text = compiled(_TEMPLATE).render(
            known=list(known),
            chosen={run.name for run in chosen},
            rows=rows,
            table=table(rows) if rows else "",
            tasks=_by_task(chosen),
            groups=_GROUPS,
            curves=overlaid(arms, "tokens"),
        )
        return Markup(text)

    return WatchPage("compare", cursor, body, chosen[0].name if chosen else "", _EVERY)


def _arms(runs: Sequence[LiveRun]) -> Mapping[str, Sequence[LiveRun]]:
    """Seeds of one setting are compared with each other where there is no other setting."""
    found = arms_of(runs)
    return found if len(found) > 1 else {run.name: [run] for run in runs}


def rows_of(arms: Mapping[str, Sequence[LiveRun]]) -> list[Row]:
    """A line per arm that has measured held-out accuracy."""
    measured = {name: [run for run in runs if run.columns.points("heldout")] for name, runs in arms.items()}
    kept = {name: runs for name, runs in measured.items() if runs}
    first = next(iter(kept.values()), [])
    return [_row(name, runs, None if runs is first else first) for name, runs in kept.items()]


def _row(name: str, runs: Sequence[LiveRun], first: Sequence[LiveRun] | None) -> Row:
    values = [run.columns.value for run in runs]
    before = [run.columns.points("heldout")[0].value for run in runs]
    return Row(
        name,
        len(runs),
        sum(before) / len(before),
        share_over_seeds(_after(runs)),
        _against(runs, first) if first else None,
        sum(value("tokens_generated") or 0.0 for value in values) / len(runs),
        sum(value("minutes") or 0.0 for value in values),
    )


def _after(runs: Sequence[LiveRun]) -> list[float]:
    return [float(run.columns.value("heldout") or 0.0) for run in runs]


def _against(runs: Sequence[LiveRun], first: Sequence[LiveRun]) -> tuple[float, float | None, float | None] | None:
    """Over the seeds that both have; None: there is none."""
    others = {run.settings.get("seed"): run for run in first}
    pairs = [(run, others[seed]) for run in runs if (seed := run.settings.get("seed")) in others]
    return over_seeds([a - b for (a, b) in (_after(pair) for pair in pairs)]) if pairs else None


def _by_task(runs: Sequence[LiveRun]) -> list[tuple[str, str, int, Difference | None]]:
    """Every run against the first."""
    with_ledger = [run for run in runs if run.folder.ledger.is_file()]
    if len(with_ledger) < 2:
        return []
    first, *others = [_earned(run) for run in with_ledger]
    found = []
    for run, own in zip(with_ledger[1:], others, strict=True):
        both = sorted(own.keys() & first.keys())
        told = paired([own[task] for task in both], [first[task] for task in both]) if len(both) >= _FEWEST else None
        found.append((run.name, with_ledger[0].name, len(both), told))
    return found


def _earned(run: LiveRun) -> dict[str, float]:
    with LedgerBrowser(run.folder.ledger) as ledger:
        return ledger.earned(_GROUPS)
