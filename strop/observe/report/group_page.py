"""Page of groups as trees: each branch stands below its parent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from strop.observe.metrics.group_tree import Shown
from strop.observe.report.templates import compiled, visible

_LEAD = """\
<h2>What groups were made of</h2>
<p class="lead">Groups with the most kinds of rollouts. A branch stands below its parent, the pale part of its bar is
  what it read from it; a bar's length is in tokens, its colour says how the rollout was rewarded.</p>
"""
_TEMPLATE = """\
{%- for group in groups %}
<div class="card kin">
<h3>Group {{ group.number }}, version {{ group.version }} <span class="soft">{{ visible(group.asked) }}</span></h3>
<p class="soft">{{ group.words }}</p>
{%- for row in group.rows %}
<div class="row">
  <b style="padding-left:{{ [row.depth, 12] | min * 16 }}px">{% if row.depth %}└ {% endif -%}
    <a{{ href(row.name) }}>{{ row.name }}</a></b>
  <span class="cost"><i class="shared" style="width:{{ share(row.shared, group) }}%"></i>
    <i class="{{ row.tone }}" style="width:{{ share(row.written, group) }}%"></i></span>
  <span class="reward {{ row.tone }}">{{ row.reward }}</span>
  <span class="why">{{ visible(row.words) }}{% if row.completion %} <code>{{ visible(row.completion) }}</code>{% endif
  %}</span>
</div>
{%- endfor %}
</div>
{%- endfor %}
"""

STYLE = """\
.kin { padding: 14px 16px; margin-top: 14px; }
.kin h3 { overflow-wrap: anywhere; }
.kin > p { font-size: 13px; margin: 2px 0 8px; }
.kin .row { display: grid; grid-template-columns: minmax(110px, auto) minmax(80px, 3fr) 44px minmax(180px, 5fr); }
.kin .row { gap: 4px 12px; align-items: center; padding: 3px 0; border-top: 1px solid var(--hair); font-size: 12.5px; }
.kin .row b { font-weight: 500; white-space: nowrap; }
.kin .cost { display: flex; height: 10px; }
.kin .cost i { height: 100%; min-width: 0; }
.kin .cost .shared { background: var(--hair); }
.kin .cost .right { background: var(--good); }
.kin .cost .wrong { background: var(--bad); }
.kin .cost .partly { background: var(--accent); }
.kin .cost .pruned, .kin .cost .failed { background: var(--soft); opacity: 0.45; }
.kin .reward { text-align: right; font-weight: 600; }
.kin .reward.right { color: var(--good); }
.kin .reward.wrong { color: var(--bad); }
.kin .reward.partly { color: var(--accent); }
.kin .why { color: var(--soft); overflow-wrap: anywhere; }
.kin code { color: var(--ink); font-size: 12px; white-space: pre-wrap; }
@media (max-width: 640px) {
  .kin .row { grid-template-columns: minmax(60px, auto) 1fr 44px; }
  .kin .why { grid-column: 1 / -1; }
}
"""


def shown(groups: Sequence[Shown], href: Callable[[str], Markup]) -> Markup:
    """With a heading; empty where there are none."""
    return Markup(_LEAD) + trees(groups, href) if groups else Markup("")


def trees(groups: Sequence[Shown], href: Callable[[str], Markup]) -> Markup:
    """A card per group, a line per rollout, whose page `href` leads to; all that a model or a task wrote is escaped."""
    return Markup(compiled(_TEMPLATE).render(groups=groups, share=_share, href=href, visible=visible))


def _share(tokens: int, group: Shown) -> str:
    return f"{100 * tokens / group.longest:.1f}"
