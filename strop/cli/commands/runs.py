"""Commands on run folders: `strop runs` (a table), `strop report` (report.html of one), `strop clean` (checkpoints)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.errors import CheckpointError, ConfigurationError, nearest
from strop.observe.report.svg_charts import short
from strop.observe.report.write_report import write_report
from strop.observe.run_files.run_info import Facts, find_runs, is_running, read_facts
from strop.storage import checkpoint
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


def clean(root: Path, is_wanted: bool) -> None:
    """For every run that is not running: all checkpoints but the newest complete and the best, and crash leftovers."""
    folders = [RunFolder(root)] if RunFolder(root).recipe.is_file() else find_runs(root)
    if not folders:
        raise ConfigurationError(f"{root} is not a run folder and contains none")
    total = 0
    for folder in folders:
        found = [] if is_running(folder) else list(needless(folder.path))
        size = sum(file.stat().st_size for each in found for file in each.rglob("*") if file.is_file())
        if found:
            names = ", ".join(str(each.relative_to(folder.path)) for each in found)
            print(f"{folder.path}: {names}, {size / 1e6:,.1f} MB")
        for each in found if is_wanted else ():
            shutil.rmtree(each)
        total += size
    then = "removed" if is_wanted else "can be removed: strop clean --yes"
    print(f"{total / 1e6:,.1f} MB {then}; the newest complete and the best checkpoint of each run are kept")


def needless(path: Path) -> Iterator[Path]:
    """Unneeded checkpoints of a run and its warm-up run; none where no checkpoint is complete."""
    for place in (each for each in path.rglob("checkpoints") if each.is_dir()):
        try:
            newest, _ = checkpoint.newest_whole(place)
        except CheckpointError:
            continue
        spared = (newest.name, (place / "best").resolve().name)
        yield from (each for each in checkpoint.listed(place) if each.name not in spared)
        yield from place.glob(".step-*.building")
