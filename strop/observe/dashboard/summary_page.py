"""Page *summary*: a whole run with its stages, fates, trained tasks, forecasts, trees, and its recipe.

It reads all groups, so it is rendered only on request.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.metrics.curriculum import curriculum_of
from strop.observe.metrics.group_tree import groups_of
from strop.observe.metrics.selection_bias import selection_of
from strop.observe.report.curriculum_page import section
from strop.observe.report.group_page import shown
from strop.observe.report.svg_charts import format_number
from strop.observe.report.templates import compiled
from strop.observe.run_files.run_info import estimator_of
from strop.observe.run_files.summary import stages
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder

_FATES = {
    "trained": "in an optimizer step",
    "gated": "left out by a gate",
    "waiting": "kept, not trained yet",
    "failed": "the environment's fault: never a reward",
}
_TEMPLATE = """\
<h1>Summary</h1>
{%- if stages %}
<h2>Held-out accuracy at each stage</h2>
<p class="lead">With 95% intervals.</p>
<div class="card fates scrolls">
  <table class="shares stages">
    <tr><th></th>{% for name in stages.names %}<th>{{ name }}</th>{% endfor %}</tr>
    {%- for label, cells in stages.rows %}
    <tr><td>{{ label }}</td>{% for value, spread in cells %}<td>{{ value }} <span class="soft">{{ spread }}</span></td>
      {%- endfor %}</tr>
    {%- endfor %}
  </table>
</div>
{%- endif %}
<h2>What became of every rollout</h2>
<p class="lead">{{ words }}</p>
{%- if fates %}
<div class="card fates">
  <div class="stack">
    {%- for fate, count, meaning in fates %}<i class="{{ fate }}" style="flex:{{ count }}"></i>{% endfor -%}
  </div>
  <div class="legend">
    {%- for fate, count, meaning in fates %}
    <span><i class="{{ fate }}"></i>{{ "{:,}".format(count) }} {{ fate }} <span class="soft">{{ meaning }}</span></span>
    {%- endfor %}
  </div>
</div>
{%- endif %}
{%- if selection %}
<h2>Which tasks were trained</h2>
<p class="lead">Gates, failures and speed choose what is learned from. Of {{ "{:,}".format(selection.offered) }} groups
  {{ "{:,}".format(selection.trained) }} were trained; they differ from what was offered by
  {{ "{:.1%}".format(selection.level_distance) }} in source and level, and their rollouts have
  {{ "{:.0f}".format(selection.tokens_trained) }} tokens instead of {{ "{:.0f}".format(selection.tokens_offered) }}.</p>
<div class="card fates scrolls">
  {%- for warning in selection.warnings %}
  <p class="warning">{{ warning }}</p>
  {%- endfor %}
  <table class="shares">
    <tr><th></th><th>offered</th><th>trained</th><th></th></tr>
    {%- for share in selection.levels %}
    <tr><td>{{ share.name }}</td><td>{{ "{:.0%}".format(share.offered_share) }}</td>
      <td>{{ "{:.0%}".format(share.trained_share) }}</td>
      <td class="bars"><i class="waiting" style="width:{{ "{:.1f}".format(100 * share.offered_share) }}%"></i>
        <i class="trained" style="width:{{ "{:.1f}".format(100 * share.trained_share) }}%"></i></td></tr>
    {%- endfor %}
  </table>
</div>
{%- endif %}
{{ forecasts }}{{ groups }}
<details><summary>The recipe, resolved</summary>
<p class="lead">Running this file again reproduces the run.</p>
<pre>{{ source }}</pre>
</details>
"""


def summary(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    run = run_index.run(asked.one("run"))
    return WatchPage("summary", "", lambda: _body(run.folder, run_index.to_rollouts(run)), run.name)


def _body(folder: RunFolder, href: Callable[[str], Markup]) -> Markup:
    text = compiled(_TEMPLATE).render(
        stages=_stages(folder), source=folder.recipe.read_text(errors="replace"), **_from_ledger(folder, href)
    )
    return Markup(text)


def _stages(folder: RunFolder) -> dict[str, Any] | None:
    """A table of held-out accuracies where there are several environments: its columns and its rows."""
    names, envs = stages(folder)
    if len(envs) < 2 or len(names) < 2:
        return None
    cells = {label: [_shown(*found) for found in each] for label, each in envs.items()}
    return {"names": names, "rows": list(cells.items())}


def _shown(value: float, low: float, high: float) -> tuple[str, str]:
    if not math.isfinite(value):
        return "–", ""
    return format_number(value, True), f"{format_number(low, True)} to {format_number(high, True)}"


def _from_ledger(folder: RunFolder, href: Callable[[str], Markup]) -> dict[str, Any]:
    """Fates, whether the ledger's promises hold, and what was chosen; only words where it cannot be read."""
    nothing: dict[str, Any] = {"fates": [], "selection": None, "forecasts": "", "groups": ""}
    if not folder.ledger.is_file():
        return {**nothing, "words": "Nothing was tried yet."}
    ledger = Ledger(folder.ledger, read_only=True)
    try:
        counts, broken, offered = ledger.counts(), ledger.violations(), ledger.offered()
        groups, skipped = shown(groups_of(ledger), href), ledger.num_skipped()
    except sqlite3.Error as error:
        return {**nothing, "words": f"The ledger could not be read: {error}"}
    finally:
        ledger.close()
    proof = f"Broken promises: {'; '.join(broken)}." if broken else "Each has exactly one fate."
    if skipped:
        proof += f" {skipped:,} tasks were skipped: their prompts fill the context."
    selection = selection_of(offered)
    return {
        "words": f"{sum(counts.values()):,} rollouts in the ledger. {proof}",
        "fates": [(fate, counts[fate], meaning) for fate, meaning in _FATES.items() if counts.get(fate)],
        "selection": selection if selection.trained else None,
        "forecasts": section(curriculum_of(offered), estimator_of(folder.recipe)),
        "groups": groups,
    }
