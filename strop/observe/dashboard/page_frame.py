"""Frame of every page: head and navigation, on a server or in one static file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup

from strop.observe.dashboard.page_model import WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.report.group_page import STYLE as STYLE_OF_GROUPS
from strop.observe.report.layout import SCRIPT, STYLE
from strop.observe.report.multi_run_chart import STYLE_OF_LINES
from strop.observe.report.rollout_page import STYLE as STYLE_OF_ROLLOUTS
from strop.observe.report.templates import compiled

STATIC = Path(__file__).parent / "static"
OF_RUN = ("now", "curves", "rollouts", "curriculum", "summary")  # pages that one run has
_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
"""
_LIVE = """\
<link rel="stylesheet" href="static/style.css">
<script src="static/charts.js" defer></script>
<script src="static/watch.js" defer></script>
<title>{{ page.title }} · strop</title>
</head>
<body>
<nav><a class="home" href="./">strop</a>
{%- for name in pages %}
<a{{ href(name, run=page.run) }}{{ ' aria-current="page"' | safe if name in (here, here ~ "s") }}>{{ name }}</a>
{%- endfor %}
{%- if page.run %}
<a class="run"{{ href("now", run=page.run) }}>{{ page.run }}</a>{% endif %}
<span id="live" class="soft" role="status"></span></nav>
<main data-cursor="{{ page.tag }}" data-every="{{ page.every }}">{{ body }}</main>
</body>
</html>
"""
_WRITTEN = """\
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-
{{- script_hash }}'; img-src data:; form-action 'none'; base-uri 'none'">
<title>{{ name }} · strop</title>
<style>{{ style }}</style>
</head>
<body>
<nav><b class="home">strop</b>
{%- for page in pages %}
<a href="#/{{ page }}">{{ page }}</a>
{%- endfor %}
<span class="run">{{ name }}</span><span id="live" class="soft">as it was</span></nav>
<main>
{%- for place, body in bodies.items() %}
<section class="page" id="/{{ place }}">{{ body }}</section>
{%- endfor %}
<footer>{{ words }}</footer>
</main>
<script>{{ script }}</script>
</body>
</html>
"""
# the page that the address names, or the first; there is no script in it
_OF_FILE = """
.page { display: none; scroll-margin-top: 100vh; }
.page:target, body:not(:has(.page:target)) .page:first-child { display: block; }
@media print { .page { display: block; break-after: page; } nav { display: none; } }
"""


def style() -> str:
    """Of every page."""
    parts = (STYLE, STYLE_OF_LINES, STYLE_OF_GROUPS, STYLE_OF_ROLLOUTS)
    return "".join(parts) + (STATIC / "watch.css").read_text()


def framed(run_index: RunIndex, page: WatchPage, here: str, body: Markup) -> str:
    """A whole page of a server."""
    pages = (*OF_RUN, "compare")
    return compiled(_HEAD + _LIVE).render(page=page, here=here, body=body, pages=pages, href=run_index.href)


def written(name: str, bodies: Mapping[str, Markup], words: Markup) -> str:
    """All pages of a run in one file, each by its place, the first one shown first; nothing is fetched."""
    return compiled(_HEAD + _WRITTEN).render(
        name=name,
        bodies=bodies,
        words=words,
        pages=OF_RUN,
        style=Markup(style() + _OF_FILE + _marked(OF_RUN)),
        script=Markup(SCRIPT),
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
    )


def _marked(pages: tuple[str, ...]) -> str:
    """Where one is: the name of the page that is shown."""
    here = [f'body:has(.page[id="/{name}"]:target) nav a[href="#/{name}"]' for name in pages]
    here += ['body:has(.page[id^="/rollout/"]:target) nav a[href="#/rollouts"]']
    here += [f'body:not(:has(.page:target)) nav a[href="#/{pages[0]}"]']
    return f"{', '.join(here)} {{ color: var(--ink); border-color: var(--accent); }}\n"
