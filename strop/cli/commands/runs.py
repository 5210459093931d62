"""Commands `strop runs` (table of run folders) and `strop report` (report.html of one)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.errors import ConfigurationError, nearest
from strop.observe.report.svg_charts import short
from strop.observe.report.write_report import write_report
from strop.observe.run_files.run_info import Facts, find_runs, read_facts
from strop.storage.run_folder import RunFolder

_COLOURS = {"complete": "green", "running": "cyan", "stopped": "yellow"}


def show_runs(root: Path, as_json: bool) -> None:
    """Print one row per run, the latest last."""
    found = [read_facts(folder) for folder in find_runs(root)]
    if as_json:
        print(json.dumps([asdict(facts) for facts in found], indent=1))
    elif not found:
        print(f"no runs in {root}: start one with strop train")
    else:
        Console().print(_table(found))


def _table(found: list[Facts]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("run", style="bold")
    table.add_column("recipe")
    for title in ("steps", "held-out before", "after", "minutes", "tokens"):
        table.add_column(title, justify="right")
    table.add_column("state")
    for facts in found:
        table.add_row(
            escape(facts.name),
            escape(facts.recipe),
            f"{facts.step}/{facts.steps}",
            _accuracy(facts.before),
            _accuracy(facts.after),
            f"{facts.seconds / 60:.1f}",
            short(facts.tokens_generated),
            f"[{_COLOURS[facts.state]}]{facts.state}[/]",
        )
    return table


def _accuracy(interval: tuple[float, float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.1%}"


def rewrite_report(path: Path) -> None:
    """Write report.html from the files of a run folder."""
    folder = RunFolder(path)
    if not folder.recipe.is_file():
        others = [run.path.name for run in find_runs(path.parent)]
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ConfigurationError(f"{path} is not a run folder: it has no recipe.py{hint}")
    print(write_report(folder))
