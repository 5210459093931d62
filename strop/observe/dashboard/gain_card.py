"""Card of held-out accuracy before and after training, as text and on a scale from 0 to 100."""

from __future__ import annotations

from markupsafe import Markup

from strop.observe.report.svg_charts import Point, format_number
from strop.observe.report.templates import compiled

_TEMPLATE = """\
<div class="gain">
  <p class="soft">Held-out accuracy</p>
  {%- if before %}
  <p class="numbers"><span class="from">{{ before }}{% if after %} →{% endif %}</span>
    {% if after %}<span class="to">{{ after }}</span>{% endif %}</p>
  <p class="soft">{{ words }}</p>
  <div class="track" role="img" aria-label="held-out accuracy on a scale from 0 to 100 percent">
    <span class="span" style="left:{{ low }}%;width:{{ width }}%"></span>
    <span class="way {{ direction }}" style="left:{{ left }}%;width:{{ length }}%"></span>
    <span class="mark" style="left:{{ start }}%"></span>
    {% if after %}<span class="mark end" style="left:{{ end }}%"></span>{% endif %}
  </div>
  <div class="scale"><span>0%</span><span>50%</span><span>100%</span></div>
  {%- else %}
  <p class="numbers"><span class="from">not measured yet</span></p>
  {%- endif %}
</div>
"""


def gain_card(first: Point | None, last: Point | None) -> Markup:
    """`first` and `last` are one where it was measured once."""
    if first is None or last is None:
        return Markup(compiled(_TEMPLATE).render(before=""))
    before, after = first.value, last.value
    low, high = (last.value if end is None else end for end in (last.low, last.high))
    words = f"95% interval {format_number(low, True)} to {format_number(high, True)}"
    is_later = last.step > first.step
    text = compiled(_TEMPLATE).render(
        before=format_number(before, True),
        after=format_number(after, True) if is_later else "",
        words=f"{100 * (after - before):+.0f} points, {words}" if is_later else words,
        low=round(100 * low, 2),
        width=round(100 * (high - low), 2),
        left=round(100 * min(before, after), 2),
        length=round(100 * abs(after - before), 2),
        start=round(100 * before, 2),
        end=round(100 * after, 2),
        direction="down" if after < before else "up",
    )
    return Markup(text)
