"""What stands around every page: its head, and the way to the others."""

from __future__ import annotations

from markupsafe import Markup

from strop.observe.templates import compiled
from strop.observe.watch.watch_page import WatchPage, address

_PAGES = ("now", "curves", "attempts", "curriculum", "compare")
_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/style.css">
<script src="static/charts.js" defer></script>
<script src="static/watch.js" defer></script>
<title>{{ page.title }} · strop</title>
</head>
<body>
<nav><a class="home" href="./">strop</a>
{%- for name in pages %}
<a href="{{ address(name, run=page.run) }}"{{ ' aria-current="page"' | safe if name == here }}>{{ name }}</a>
{%- endfor %}
{%- if page.run %}
<a class="run" href="{{ address("now", run=page.run) }}">{{ page.run }}</a>{% endif %}
<span id="live" class="soft" role="status"></span></nav>
<main data-cursor="{{ page.tag }}" data-every="{{ page.every }}">{{ body }}</main>
</body>
</html>
"""


def framed(page: WatchPage, here: str, body: Markup) -> str:
    """The whole page."""
    return compiled(_TEMPLATE).render(page=page, here=here, body=body, pages=_PAGES, address=address)
