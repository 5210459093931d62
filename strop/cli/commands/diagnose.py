"""Command `strop diagnose`: settings of many runs ranked by effect, with the best value of each and intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from strop.errors import ConfigurationError
from strop.observe.metrics.tokens_to_target import curve
from strop.observe.run_files.run_info import find_runs, read_summary
from strop.observe.run_files.settings_table import settings_of, varied
from strop.stats.bootstrap import ValueStanding, picked, standings
from strop.storage.run_folder import RunFolder


def diagnose(places: Sequence[Path], resamples: int, seed: int, as_json: bool) -> dict[str, Any]:
    """Read run folders, or folders of them; print one table per setting in which they differ."""
    folders = [folder for place in places for folder in _runs(place)]
    finished = [folder for folder in folders if read_summary(folder).get("heldout_after") is not None]
    if len(finished) < 2:
        raise ConfigurationError(
            f"diagnose needs at least 2 runs with a held-out accuracy after training, found {len(finished)} in "
            f"{len(folders)} run folders"
        )
    finished, other = _alike(finished)
    scores = [picked(curve(folder, "heldout")[1]) for folder in finished]
    settings = varied([settings_of(folder.recipe) for folder in finished])
    if not settings:
        raise ConfigurationError(f"all {len(finished)} runs have the same settings except their seeds")
    found = {name: standings(values, scores, resamples, seed=seed) for name, values in settings.items()}
    ordered = dict(sorted(found.items(), key=lambda item: -_gap(item[1])))
    result = {
        "runs": [str(folder.path) for folder in finished],
        "scores": scores,
        "left_out": len(folders) - len(finished) - len(other),
        "other_tasks": [str(folder.path) for folder in other],
        "resamples": resamples,
        "settings": {name: [_plain(each) for each in values] for name, values in ordered.items()},
    }
    if as_json:
        print(json.dumps(result, indent=1))
    else:
        _show(ordered, len(finished), len(folders) - len(finished) - len(other), resamples)
        if other:
            names = ", ".join(folder.path.name for folder in other)
            print(f"left out, as they were measured on other tasks: {names}")
    return result


def _runs(place: Path) -> list[RunFolder]:
    if (place / "recipe.py").is_file():
        return [RunFolder(place)]
    if not place.is_dir():
        raise ConfigurationError(f"{place} is not a folder")
    return find_runs(place)


def _alike(folders: Sequence[RunFolder]) -> tuple[list[RunFolder], list[RunFolder]]:
    """The runs that were measured on the tasks that most were measured on, and the others."""
    measured = [{k: v for k, v in settings_of(each.recipe).items() if k.startswith("envs")} for each in folders]
    most = max(measured, key=measured.count)
    found: tuple[list[RunFolder], list[RunFolder]] = [], []
    for folder, tasks in zip(folders, measured, strict=True):
        found[tasks != most].append(folder)
    if len(found[0]) < 2:
        raise ConfigurationError(
            "diagnose compares runs on the same tasks, and no two of these runs have the same env: "
            f"{', '.join(folder.path.name for folder in folders)}"
        )
    return found


def _gap(values: Sequence[ValueStanding]) -> float:
    """Effect of a setting: accuracy of its best value minus that of its worst."""
    bests = [each.best for each in values if not math.isnan(each.best)]
    return max(bests) - min(bests)


def _plain(standing: ValueStanding) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in asdict(standing).items()}


def _show(found: dict[str, list[ValueStanding]], count: int, left_out: int, resamples: int) -> None:
    console = Console(highlight=False)
    more = f"; {left_out} without a held-out accuracy left out" if left_out else ""
    console.print(f"{count} runs, {resamples} resamples{more}; the setting with the largest effect first")
    for name, values in found.items():
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("value")
        for title in ("runs", "wins", "best held-out", "95% interval"):
            table.add_column(title, justify="right")
        for each in values:
            interval = f"{each.low:.1%} to {each.high:.1%}"
            table.add_row(escape(each.value), str(each.runs), f"{each.wins:.0%}", f"{each.median:.1%}", interval)
        console.print(f"\n[bold]{escape(name)}[/]", soft_wrap=True)
        console.print(table)
