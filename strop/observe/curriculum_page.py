"""The part of a report that shows the curriculum; empty for a run that had nothing to choose."""

from __future__ import annotations

from markupsafe import Markup

from strop.control.beliefs.counts import Counts
from strop.observe.curriculum import Curriculum
from strop.observe.overlay import cards
from strop.observe.templates import compiled

_TEMPLATE = """\
<h2>The curriculum</h2>
<p class="lead">{{ words }}</p>
{%- if panels %}
<div class="lessons">{{ cards(panels, names) }}</div>
{%- endif %}
{%- if told %}
<h2>Did it come as foreseen?</h2>
<p class="lead">What the belief expected before the first attempt, and what came, by tenths of the forecast.
  Brier score {{ "{:.3f}".format(told.brier) }}; the mean as forecast of all has
  {{ "{:.3f}".format(told.constant) }}, and 0 is perfect.</p>
<div class="card fates">
  <table class="shares">
    <tr><th></th><th>foreseen</th><th>came</th><th></th></tr>
    {%- for each in told.deciles %}
    <tr><td>{{ "{:,}".format(each.groups) }} groups</td><td>{{ "{:.0%}".format(each.foreseen) }}</td>
      <td>{{ "{:.0%}".format(each.came) }}</td>
      <td class="bars"><i class="waiting" style="width:{{ "{:.1f}".format(100 * each.foreseen) }}%"></i>
        <i class="trained" style="width:{{ "{:.1f}".format(100 * each.came) }}%"></i></td></tr>
    {%- endfor %}
  </table>
</div>
{%- endif %}
"""

STYLE = """\
.lessons .panels { grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); }
"""


def section(curriculum: Curriculum, belief: str) -> Markup:
    """Curves by level where there are several, and how forecasts fared; `belief` is the class that made them."""
    if len(curriculum.levels) < 2 and belief in ("", Counts.__name__):  # which knows one figure for all
        return Markup("")
    lessons = curriculum.lessons
    text = compiled(_TEMPLATE).render(
        words=_words(curriculum),
        panels=lessons.panels() if len(curriculum.levels) > 1 else [],
        told=curriculum.calibration,
        cards=cards,
        names=lessons.shown,
    )
    return Markup(text)


def _words(curriculum: Curriculum) -> str:
    shown = curriculum.lessons.shown
    spent, levels = curriculum.without_gradient, len(curriculum.levels)
    said = f"By optimizer step. Of {spent['attempts']:,} attempts {spent['untrained']:,} were never trained on"
    said += f" and {spent['without_contrast']:,} stood beside siblings that were rewarded alike: no gradient where"
    said += " siblings are compared."
    if levels > len(shown):
        said += f" Of {levels} levels those {len(shown)} are drawn that were tried most."
    return said
