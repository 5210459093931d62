"""Page on the cost and the forecasts of a curriculum; empty for a run without one."""

from __future__ import annotations

from markupsafe import Markup

from strop.control.estimators.pass_rate_counts import Counts
from strop.observe.metrics.curriculum import Curriculum
from strop.observe.report.templates import compiled

_TEMPLATE = """\
<h2>What the curriculum cost</h2>
<p class="lead">{{ words }}</p>
{%- if told %}
<h2>Did it come as predicted?</h2>
<p class="lead">What the pass-rate estimator expected before the first rollout, and what came, by tenths of the
forecast.
  Brier score {{ "{:.3f}".format(told.brier) }}; the mean as forecast of all has
  {{ "{:.3f}".format(told.constant) }}, and 0 is perfect.</p>
<div class="card fates">
  <table class="shares">
    <tr><th></th><th>predicted</th><th>came</th><th></th></tr>
    {%- for each in told.deciles %}
    <tr><td>{{ "{:,}".format(each.groups) }} groups</td><td>{{ "{:.0%}".format(each.predicted) }}</td>
      <td>{{ "{:.0%}".format(each.came) }}</td>
      <td class="bars"><i class="waiting" style="width:{{ "{:.1f}".format(100 * each.predicted) }}%"></i>
        <i class="trained" style="width:{{ "{:.1f}".format(100 * each.came) }}%"></i></td></tr>
    {%- endfor %}
  </table>
</div>
{%- endif %}
"""


def section(curriculum: Curriculum, estimator: str) -> Markup:
    """What gave no gradient, and how forecasts fared; `estimator` is the class that made them."""
    if len(curriculum.levels) < 2 and estimator in ("", Counts.__name__):  # which knows one metric for all
        return Markup("")
    return Markup(compiled(_TEMPLATE).render(words=_words(curriculum), told=curriculum.calibration))


def _words(curriculum: Curriculum) -> str:
    spent = curriculum.without_gradient
    said = f"Of {spent['rollouts']:,} rollouts {spent['untrained']:,} were never trained on"
    said += f" and {spent['without_contrast']:,} stood beside siblings that were rewarded alike: no gradient where"
    return f"{said} siblings are compared."
