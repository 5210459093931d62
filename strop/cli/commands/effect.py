"""Command `strop effect`: runs an experiment and writes its result."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from strop.cli.fields.overrides import convert
from strop.effects import Metrics, Plan, find_experiment, load_experiment, run_experiment, write_result
from strop.errors import ConfigurationError, nearest
from strop.observe.report.compare_runs import shown
from strop.recipes.setting import Setting


def run_effect(
    key: str,
    words: Sequence[str],
    seeds: int,
    tokens: int,
    folder: Path | None,
    runs: Path,
    jobs: int,
    overwrite: bool,
) -> None:
    """Run all arms over all seeds, then print and write the result."""
    console = Console(highlight=False)
    experiment = load_experiment(find_experiment(key, folder))
    experiment = replace(experiment, tokens=tokens or experiment.tokens)
    plan = Plan(experiment, seeds, setting_of(words), runs)
    console.print(f"[bold]{experiment.key}[/]: {experiment.claim}", soft_wrap=True)
    budget = f"{seeds} seeds, 3 arms each, {experiment.tokens:,} generated tokens per run"
    console.print(f"{budget}; runs go to {plan.root}", soft_wrap=True)
    with shown(console, plan.arms, experiment.tokens) as refresh:
        result = run_experiment(plan, jobs, refresh)
    _print(console, result)
    write_result(plan.root, result, overwrite=True)
    results = experiment.path.parent / "results"
    written = write_result(results, result, overwrite)
    if written is not None:
        console.print(f"written to {written}", soft_wrap=True)
    else:
        console.print(
            f"written only to {plan.root}: {results / experiment.key}.json has more seeds or more tokens per run; "
            "--overwrite replaces it",
            soft_wrap=True,
        )


def setting_of(words: Sequence[str]) -> Setting:
    """`device=cuda threads=2` as the setting of every arm."""
    kinds, given = typing.get_type_hints(Setting), dict[str, Any]()
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in {field.name for field in fields(Setting)} - {"seed"}:
            raise ConfigurationError(f"a setting has no field {word!r}: {nearest(name, [*kinds])}")
        given[name] = convert(text, kinds[name], name)
    return Setting(**given)


def _print(console: Console, result: Metrics) -> None:
    colour = {"holds": "green", "does not hold": "red"}.get(result["verdict"], "yellow")
    console.print(
        f"[bold {colour}]{result['verdict']}[/]: treatment - control {result['difference']:+.3f} "
        f"(95% interval {result['low']:+.3f} to {result['high']:+.3f})",
        soft_wrap=True,
    )
