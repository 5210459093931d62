"""`strop doctor`: what is wrong with a run, what shows it, and what helps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from strop.errors import ConfigurationError, nearest
from strop.observe.examine import examine, rules
from strop.observe.health import RunVerdict
from strop.observe.run_files.run_info import find_runs
from strop.storage.run_folder import RunFolder


def doctor(paths: Sequence[Path], as_json: bool) -> int:
    """Examine runs; returns 1 where something is grave."""
    found = {str(folder.path): examine(folder) for path in paths for folder in _runs(path)}
    if as_json:
        print(json.dumps({name: [asdict(each) for each in verdicts] for name, verdicts in found.items()}, indent=1))
    else:
        for name, verdicts in found.items():
            _show(name, verdicts)
    return int(any(verdict.is_grave for verdicts in found.values() for verdict in verdicts))


def _runs(path: Path) -> list[RunFolder]:
    """A run folder, or all in a folder of them."""
    if (path / "recipe.py").is_file():
        return [RunFolder(path)]
    if not (runs := find_runs(path)):
        others = [run.path.name for run in find_runs(path.parent)]
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ConfigurationError(f"{path} is no run folder: it has no recipe.py{hint}")
    return runs


def _show(name: str, verdicts: Sequence[RunVerdict]) -> None:
    console = Console(highlight=False)
    count = len(rules())
    said = f"{len(verdicts)} of {count} rules found something" if verdicts else f"none of {count} rules found anything"
    console.print(f"[bold]{escape(name)}[/]: {said}", soft_wrap=True)
    for verdict in verdicts:
        colour = "red" if verdict.is_grave else "yellow"
        console.print(f"  [{colour}]{escape(verdict.name)}[/]: {escape(verdict.evidence)}", soft_wrap=True)
        console.print(f"    what helps: {escape(verdict.remedy)}", soft_wrap=True)
