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
from strop.observe.health import HealthFinding
from strop.observe.run_files.run_info import find_runs
from strop.storage.run_folder import RunFolder


def doctor(paths: Sequence[Path], as_json: bool) -> int:
    """Examine runs; returns 1 where something is grave."""
    found = {str(folder.path): examine(folder) for path in paths for folder in _runs(path)}
    if as_json:
        print(json.dumps({name: [asdict(each) for each in findings] for name, findings in found.items()}, indent=1))
    else:
        for name, findings in found.items():
            _show(name, findings)
    return int(any(finding.is_grave for findings in found.values() for finding in findings))


def _runs(path: Path) -> list[RunFolder]:
    """A run folder, or all in a folder of them."""
    if (path / "recipe.py").is_file():
        return [RunFolder(path)]
    if not (runs := find_runs(path)):
        others = [run.path.name for run in find_runs(path.parent)]
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ConfigurationError(f"{path} is no run folder: it has no recipe.py{hint}")
    return runs


def _show(name: str, findings: Sequence[HealthFinding]) -> None:
    console = Console(highlight=False)
    count = len(rules())
    said = f"{len(findings)} of {count} rules found something" if findings else f"none of {count} rules found anything"
    console.print(f"[bold]{escape(name)}[/]: {said}", soft_wrap=True)
    for finding in findings:
        colour = "red" if finding.is_grave else "yellow"
        console.print(f"  [{colour}]{escape(finding.name)}[/]: {escape(finding.evidence)}", soft_wrap=True)
        console.print(f"    what helps: {escape(finding.remedy)}", soft_wrap=True)
