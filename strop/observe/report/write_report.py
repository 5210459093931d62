"""Static report `report.html`: the pages of `strop watch` in one file, written from the run folder at any time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from strop.observe.dashboard.curves_page import curves
from strop.observe.dashboard.live_run import LiveRun
from strop.observe.dashboard.now_page import now
from strop.observe.dashboard.page_frame import written
from strop.observe.dashboard.page_model import PageQuery
from strop.observe.dashboard.pass_rates_page import curriculum
from strop.observe.dashboard.report_selection import keep
from strop.observe.dashboard.rollout_detail_page import rollout
from strop.observe.dashboard.rollouts_list import rollouts
from strop.observe.dashboard.run_index import RunIndex
from strop.observe.dashboard.summary_page import summary
from strop.storage.ledger.browser import LedgerBrowser
from strop.storage.run_folder import RunFolder

_WORDS = Markup(
    "strop {} · go on with <code>strop train --resume {path}</code> · talk to it with <code>strop chat {path}</code>"
)


def write_report(folder: RunFolder) -> Path:
    """Write the report of a run, finished or not; returns its path."""
    folder.report.write_text(render(folder), errors="replace")
    return folder.report


def render(folder: RunFolder) -> str:
    """The file as text; everything a model or a task wrote is escaped."""
    run_index = RunIndex(folder.path, keep(folder))
    run = run_index.run("")
    _catch_up(run)
    return written(run.name, dict(_bodies(run_index)), _WORDS.format(_version(), path=folder.path))


def _catch_up(run: LiveRun) -> None:
    """A look reads for a moment; a file is written once, so it looks until nothing is new."""
    cursor = ""
    while (found := run.look()) != cursor:
        cursor = found
    if run.folder.ledger.is_file():
        with LedgerBrowser(run.folder.ledger) as ledger:
            run.lessons.look(ledger)
            while run.lessons.is_behind:
                run.lessons.look(ledger)


def _bodies(run_index: RunIndex) -> Iterator[tuple[str, Markup]]:
    """By their place in the file."""
    assert run_index.kept is not None
    yield "now", now(run_index, PageQuery()).body()
    yield "curves", curves(run_index, PageQuery({"all": ["1"]})).body()
    yield "rollouts", rollouts(run_index, PageQuery()).body()
    yield "curriculum", curriculum(run_index, PageQuery()).body()
    yield "summary", summary(run_index, PageQuery()).body()
    for name in run_index.kept.ids:
        yield f"rollout/{quote(name)}", rollout(run_index, PageQuery({"id": [name]})).body()


def _version() -> str:
    try:
        return version("strop")
    except PackageNotFoundError:
        return ""
