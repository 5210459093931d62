"""Command `strop replay`: retrains a run from its ledger and compares the weights bit by bit."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from strop.cli.terminal import is_trusted
from strop.launch.experiments.retrain import Replayed, retrain
from strop.launch.running.provenance_check import differences
from strop.models.silence_libraries import hush
from strop.storage.run_folder import RunFolder
from strop.storage.run_source import from_source


def replay_run(path: Path, quiet: bool, trust: bool = False) -> int:
    """Returns 0 if every version is equal, 1 if one differs or none could be compared."""
    hush()
    console = Console(highlight=False)
    trust = is_trusted(RunFolder(path), trust)
    progress = (lambda replayed: None) if quiet else (lambda replayed: console.print(_line(replayed)))
    made = retrain(path, progress, trust)
    compared = [each for each in made if each.published or each.saved]
    last = made[-1]
    if not last.is_equal:
        console.print(f"[red]differs at step {last.step}[/red]: {_others(last)}, retrained {last.fingerprint}")
        folder = RunFolder(path)
        found = differences(folder, from_source(folder.recipe, trust)) or ["none that origin.json records"]
        console.print("differences since the run: " + "; ".join(found), soft_wrap=True, markup=False)
        return 1
    if not compared:
        console.print("nothing to compare: the ledger has no fingerprint and no checkpoint exists")
        return 1
    steps = f"{last.step} steps retrained from the ledger"
    console.print(f"[green]equal[/green]: {steps}, {len(compared)} versions compared, the last is {last.fingerprint}")
    return 0


def _line(replayed: Replayed) -> str:
    against = [name for name, other in (("published", replayed.published), ("checkpoint", replayed.saved)) if other]
    verdict = f"{'equal to' if replayed.is_equal else 'differs from'} {' and '.join(against)}" if against else ""
    return f"step {replayed.step:4}  {replayed.fingerprint}  {verdict}"


def _others(replayed: Replayed) -> str:
    named = {"published": replayed.published, "checkpoint": replayed.saved}
    return ", ".join(f"{name} {other}" for name, other in named.items() if other)
