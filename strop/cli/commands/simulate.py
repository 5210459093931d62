"""Command `strop simulate`: gain of a sampler over uniform sampling on a simulated learner with known pass rates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console

from strop.capabilities import Loads, inside
from strop.catalogue.record import recipe_files
from strop.cli.fields.arguments import parse_words
from strop.cli.fields.named_parts import modules, named, values
from strop.cli.fields.overrides import find_recipe, make_run
from strop.cli.fields.recipe_help import table
from strop.control import estimators, samplers
from strop.control.estimators.pass_rate_counts import Counts
from strop.errors import ConfigurationError, nearest
from strop.roles import PassRateEstimator, Sampler
from strop.simulate.compare_samplers import BOUNDS, MOST, ArmStanding, Maker, contest, of_parts, permuted, sampler_of
from strop.simulate.scenarios import SCENARIOS, Scenario
from strop.simulate.training_loop import Control


def simulate(
    words: Sequence[str], scenarios: Sequence[Scenario], seeds: int, as_json: bool, estimator: str = ""
) -> None:
    """Simulate the named sampler or recipe, its negative control and the bounds in each scenario."""
    typed = parse_words(words)
    make, remarks = maker_of(typed.recipe, typed.overrides, estimator)
    arms = {typed.recipe: make, f"{typed.recipe}, permuted": permuted(make), **BOUNDS}
    found = {scenario.name: contest(scenario, arms, seeds) for scenario in scenarios}
    if as_json:
        plain = {name: {arm: each.plain() for arm, each in rows.items()} for name, rows in found.items()}
        print(json.dumps({"seeds": seeds, "scenarios": plain}, indent=1))
        return
    console = Console(highlight=False)
    for line in remarks:
        console.print(line, soft_wrap=True)
    for scenario in scenarios:
        _show(console, scenario, found[scenario.name], seeds)


def scenarios_of(names: str, lag: int, bias: float, lies: bool) -> list[Scenario]:
    """Scenarios by name, comma-separated, or all, with lag, bias and permuted levels applied."""
    wanted = list(SCENARIOS) if names == "all" else names.split(",")
    for name in wanted:
        if name not in SCENARIOS:
            raise ConfigurationError(f"there is no scenario {name!r}: {nearest(name, SCENARIOS)}")
    return [replace(SCENARIOS[name], lag=lag, bias=bias, lies=lies) for name in wanted]


def maker_of(word: str, overrides: Mapping[str, str], estimator: str = "") -> tuple[Maker, list[str]]:
    """Sampler, estimator, budget and gates of a named sampler or recipe, and remarks; `estimator` replaces its own."""
    chosen = _estimator(estimator) if estimator else None
    if (kind := named(samplers, word, Sampler)) is not None:
        return sampler_of(kind, values(kind, overrides), chosen or Counts()), []
    if not word.endswith(".py") and word not in recipe_files():
        known = {*modules(samplers, Sampler), *recipe_files()}
        raise ConfigurationError(f"there is no sampler and no recipe {word!r}: {nearest(word, known)}")
    scenario = next(iter(SCENARIOS.values()))
    sizes = {"groups_per_step": str(scenario.groups_per_step), "group_size": str(scenario.group_size)}
    run = make_run(find_recipe(word), {**sizes, **overrides})
    remarks = []
    if chosen is None and inside(run.estimator, Loads):
        chosen = Counts()
        remarks = [f"{type(run.estimator).__name__} needs a model, a simulation has none: Counts replaces it"]
    return of_parts(Control(run.sampler, chosen or run.estimator, run.budget, run.gates)), remarks


def _estimator(word: str) -> PassRateEstimator:
    if (kind := named(estimators, word, PassRateEstimator)) is None:
        raise ConfigurationError(
            f"there is no pass-rate estimator {word!r}: {nearest(word, modules(estimators, PassRateEstimator))}"
        )
    found = kind()
    if inside(found, Loads):
        raise ConfigurationError(f"{kind.__name__} needs a model, a simulation has none")
    return found


def _show(console: Console, scenario: Scenario, found: Mapping[str, ArmStanding], seeds: int) -> None:
    end = sum(found["uniform"].finals) / seeds
    console.print(f"\n[bold]{scenario.name}[/]: {scenario.about}", soft_wrap=True)
    console.print(f"uniform reaches {end:.0%} held-out accuracy with {scenario.tokens:,} tokens; {seeds} seeds\n")
    rows = table("tokens to reach uniform's final accuracy", "relative to uniform", "95% interval", "")
    for name, standing in found.items():
        mean, low, high = standing.spread
        least = "at least " if standing.num_late else ""
        interval = f"{low:.2f} to {high:.2f}" if low is not None and high is not None else ""
        verdict = standing.verdict if name != "uniform" else ""
        verdict += f"; not reached with {MOST:g} times the tokens in {standing.num_late} seeds" if least else ""
        rows.add_row(name, f"{least}{mean:.2f}", interval if name != "uniform" else "", verdict)
    console.print(rows)
