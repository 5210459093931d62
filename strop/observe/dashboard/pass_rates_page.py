"""Page *curriculum*: pass rate by kind of task over time, of offered and of trained groups."""

from __future__ import annotations

from markupsafe import Markup

from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.page_model import PageQuery, WatchPage
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.report.multi_run_chart import cards
from strop.storage.ledger.browser import LedgerBrowser

_EVERY, _BEHIND = 10.0, 1.0  # seconds, and while a long history is being read
_WORDS = Markup('<h1>Curriculum</h1><p class="lead">By optimizer step.{}</p>')


def curriculum(run_index: RunIndex, asked: PageQuery) -> WatchPage:
    run = run_index.run(asked.one("run"))
    run.look()
    if not run.folder.ledger.is_file():
        return WatchPage("curriculum", "", lambda: _WORDS.format(" Nothing was tried yet."), run.name, _EVERY)
    with LedgerBrowser(run.folder.ledger) as ledger:
        cursor = run.lessons.look(ledger)
    every = _BEHIND if run.lessons.is_behind else _EVERY
    return WatchPage("curriculum", f"{run.life}:{cursor}", lambda: _body(run), run.name, every)


def _body(run: LiveRun) -> Markup:
    live = run.lessons
    read = f" {live.number + 1:,} of {live.last + 1:,} groups are read so far." if live.is_behind else ""
    lessons = live.lessons
    left = lessons.num_kinds - len(lessons.shown)
    read += f" {left} more kinds were tried less often and are not drawn." if left else ""
    return _WORDS.format(read) + cards(lessons.panels(), lessons.shown)
