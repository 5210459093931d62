"""`strop effect`: run an experiment and write down what came of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from strop.cli.models import hush
from strop.effects import Figures, load_experiment, run_experiment, write_result


def run_effect(key: str, seeds: int, tokens: int, folder: Path, runs: Path, jobs: int = 1) -> None:
    """All arms over all seeds, then the verdict."""
    hush()
    console = Console(highlight=False)
    experiment = load_experiment(folder, key)
    if tokens:
        experiment = replace(experiment, tokens=tokens)

    def tell(arm: str, seed: int, figures: Figures) -> None:
        value, seconds = figures[experiment.metric], figures["seconds"]
        console.print(
            f"seed {seed} {arm:<9} {experiment.metric} {value:.3f}  {figures['steps']} steps, {seconds:.0f} s"
        )

    console.print(f"[bold]{key}[/]: {experiment.claim}", soft_wrap=True)
    console.print(f"{seeds} seeds, 3 arms each, {experiment.tokens:,} generated tokens per arm")
    result = run_experiment(experiment, range(seeds), runs, tell, jobs)
    colour = {"holds": "green", "does not hold": "red"}.get(result["verdict"], "yellow")
    console.print(
        f"[bold {colour}]{result['verdict']}[/]: treatment - control {result['difference']:+.3f} "
        f"(95% interval {result['low']:+.3f} to {result['high']:+.3f})",
        soft_wrap=True,
    )
    console.print(f"written to {write_result(folder, result)}", soft_wrap=True)
