"""Certificate as one self-contained page: overall result, findings, and every check."""

from __future__ import annotations

from strop.attack.certificate.certificate import Certificate
from strop.attack.results import shown
from strop.observe.report.layout import ONE_FILE_HEAD, STYLE
from strop.observe.report.templates import compiled

_STYLE = """
.verdict { font-size: 38px; font-weight: 650; letter-spacing: -0.03em; line-height: 1.15; margin: 4px 0 2px; }
.verdict.pass { color: var(--good); } .verdict.fail { color: var(--bad); }
.finding { padding: 12px 16px; margin-top: 10px; border-left: 3px solid var(--bad); }
.finding.warned { border-left-color: var(--accent); }
.finding p { font-size: 12.5px; }
.finding code { color: var(--soft); font-size: 12.5px; overflow-wrap: anywhere; }
.check { padding: 14px 18px; margin-top: 12px; }
.check header { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; }
.check header .state { margin-left: auto; }
.state.fault { color: var(--bad); border-color: currentColor; }
.state.warning { color: var(--accent); border-color: currentColor; }
.state.sound { color: var(--good); border-color: currentColor; }
.check p { font-size: 13px; overflow-wrap: anywhere; }
.check .scrolls { overflow-x: auto; margin-top: 8px; columns: 2 300px; column-gap: 28px; font-size: 13px; }
.check .scrolls div { display: flex; justify-content: space-between; gap: 12px; break-inside: avoid; }
.check .scrolls div + div { border-top: 1px solid var(--hair); }
.check .scrolls span:first-child { overflow-wrap: anywhere; }
"""
_PAGE = (
    ONE_FILE_HEAD
    + """\
<title>{{ told.env }} · certificate · strop</title>
<style>{{ style }}</style>
</head>
<body>
<main>
<p class="eyebrow">certificate of an episode and its rewards</p>
<h1>{{ told.subject }}</h1>
<p class="soft">episode {{ told.env }} · rewards {{ told.rewards | join(", ") }}</p>
<div class="card hero">
  <div class="gain">
    <p class="soft">verdict</p>
    <p class="verdict {{ verdict }}">{{ verdict }}</p>
    <p class="soft">faults: {{ faults | length }}, warnings: {{ warnings | length }}</p>
  </div>
  <dl class="facts">
    <div><dt>tried</dt><dd>{{ "{:,}".format(tried) }}</dd></div>
    <div><dt>questions</dt><dd>{{ asked }} of {{ told.checks | length }}</dd></div>
    <div><dt>seconds</dt><dd>{{ "%.0f" | format(told.seconds) }}</dd></div>
    <div><dt>seed</dt><dd>{{ told.seed }}</dd></div>
  </dl>
</div>
{%- if findings %}
<h2>Findings</h2>
<p class="lead">A fault is something a policy can learn to exploit, or that makes its reward untrue. A warning may be
meant.</p>
{%- for name, each in findings %}
<div class="card finding{{ " warned" if each.is_warning }}">
  <h3>{{ each.text }}</h3>
  <p class="soft">{{ "warning" if each.is_warning else "fault" }} · {{ name }}</p>
  {%- if each.example %}<code>{{ shown(each.example) }}</code>{% endif %}
</div>
{%- endfor %}
{%- endif %}
<h2>What was tried</h2>
<p class="lead">Every question, how many completions or rows were tried, and what was left out.</p>
{%- for check in told.checks %}
<section class="card check">
  <header><h3>{{ check.name }}</h3><span class="soft">{{ "{:,}".format(check.tried) }} tried</span>
    <span class="state {{ check.verdict }}">{{ check.verdict }}</span></header>
  {%- if check.what %}<p class="soft">{{ check.what }}</p>{% endif %}
  {%- if check.left_out %}<p><b>left out:</b> {{ check.left_out }}</p>{% endif %}
  {%- if check.table %}
  <div class="scrolls">
    {%- for name, value in check.table.items() %}
    <div><span>{{ name }}</span><span>{{ value }}</span></div>
    {%- endfor %}
  </div>
  {%- endif %}
</section>
{%- endfor %}
<footer>strop {{ told.version }} · a pass says that nothing of this list works, not that nothing does</footer>
</main>
</body>
</html>
"""
)


def page(told: Certificate) -> str:
    """The certificate as HTML; everything that a task or an episode wrote is escaped."""
    from markupsafe import Markup

    return compiled(_PAGE).render(
        told=told,
        style=Markup(STYLE + _STYLE),
        verdict="pass" if told.is_passed else "fail",
        faults=told.faults,
        warnings=told.warnings,
        findings=[*told.faults, *told.warnings],
        tried=sum(each.tried for each in told.checks),
        asked=sum(each.tried > 0 for each in told.checks),
        shown=shown,
    )
