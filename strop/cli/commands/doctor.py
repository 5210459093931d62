"""Command `strop doctor`: health checks of runs, with evidence and remedy for each finding."""

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
    """Examine runs; returns 1 if a finding is grave."""
    found = {str(folder.path): examine(folder) for path in paths for folder in _runs(path)}
    if as_json:
        print(json.dumps({name: [asdict(each) for each in findings] for name, findings in found.items()}, indent=1))
    else:
        for name, findings in found.items():
            _show(name, findings)
    return int(any(finding.is_grave for findings in found.values() for finding in findings))


def _runs(path: Path) -> list[RunFolder]:
    """The run folder, or all run folders in a folder."""
    if (path / "recipe.py").is_file():
        return [RunFolder(path)]
    if not (runs := find_runs(path)):
        others = [run.path.name for run in find_runs(path.parent)]
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ConfigurationError(f"{path} is not a run folder: it has no recipe.py{hint}")
    return runs


def _show(name: str, findings: Sequence[HealthFinding]) -> None:
    console = Console(highlight=False)
    count = len(rules())
    console.print(f"[bold]{escape(name)}[/]: {len(findings) or 'no'} findings, {count} health checks", soft_wrap=True)
    for finding in findings:
        colour = "red" if finding.is_grave else "yellow"
        console.print(f"  [{colour}]{escape(finding.name)}[/]: {escape(finding.evidence)}", soft_wrap=True)
        console.print(f"    remedy: {escape(finding.remedy)}", soft_wrap=True)
