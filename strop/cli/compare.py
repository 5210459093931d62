"""`strop compare`: recipes at an equal budget of generated tokens, over seeds, in one live table and on one page."""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from strop.cli.models import hush
from strop.cli.overrides import find_recipe, make_run
from strop.disk.folder import RunFolder, read_rows
from strop.effects import paired
from strop.errors import ConfigurationError, StropError
from strop.observe.overlay import Line, Panel, Row, interval, write_page
from strop.pipeline import Watcher
from strop.roles import Metrics
from strop.run import Run
from strop.start.launch import launch

_NO_LIMIT = 1_000_000_000  # steps: the token budget ends a run
_GRID = 41  # places along the budget at which curves of several seeds are averaged
_PANELS = (
    ("Held-out accuracy", "heldout", "on tasks that are never trained", True),
    ("Reward", "reward", "mean over the attempts of a step", False),
    ("Length", "length", "tokens per attempt", False),
    ("Entropy", "entropy", "nats per token", False),
)


@dataclass(frozen=True)
class Plan:
    """What is compared: recipe names, fields that all of them are given, seeds, tokens per run, and where it goes."""

    recipes: tuple[str, ...]
    fields: tuple[str, ...]
    seeds: int
    tokens: int
    folder: Path

    @property
    def wanted(self) -> list[tuple[str, int]]:
        """Seed by seed, so that after each the comparison is fair."""
        return [(recipe, seed) for seed in range(self.seeds) for recipe in self.recipes]

    def run_folder(self, recipe: str, seed: int) -> RunFolder:
        return RunFolder(self.folder / f"{Path(recipe).stem}-seed{seed}")


def compare(words: Sequence[str], seeds: int, tokens: int, jobs: int, root: Path, name: str) -> dict[str, Any]:
    """Run everything, show a table meanwhile, and leave compare.html and summary.json."""
    hush()
    plan = plan_of(words, seeds, tokens, root, name)
    console = Console(highlight=False)
    console.print(
        f"{len(plan.recipes)} recipes, {seeds} seeds each, {tokens:,} generated tokens per run, {jobs} at a time"
    )
    with Live(live_table(plan), console=console, refresh_per_second=2) as live:
        _run_all(plan, jobs, lambda: live.update(live_table(plan)))
    if not console.is_terminal:  # where the table is written once, without the end of its last line
        console.print()
    summary = summarize(plan)
    (plan.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    page = page_of(plan, summary)
    console.print(f"written to {page} and {plan.folder / 'summary.json'}", soft_wrap=True)
    return summary


def plan_of(words: Sequence[str], seeds: int, tokens: int, root: Path, name: str) -> Plan:
    """Recipes and fields as they were typed; every run is built once, so that mistakes show before anything starts."""
    recipes = tuple(word for word in words if "=" not in word)
    fields = tuple(word for word in words if "=" in word)
    if len(recipes) < 2 or len(set(recipes)) != len(recipes):
        raise ConfigurationError(f"compare needs at least 2 different recipes, got {' '.join(recipes) or 'none'}")
    folder = root / (name or "-".join(recipes))
    if (folder / "summary.json").exists() or any(folder.glob("*-seed*")):
        raise ConfigurationError(f"{folder} holds a comparison already: give another --name")
    plan = Plan(recipes, fields, seeds, tokens, folder)
    for recipe in recipes:
        _built(plan, recipe, 0)
    folder.mkdir(parents=True, exist_ok=True)
    return plan


def _built(plan: Plan, recipe: str, seed: int) -> Run:
    given = {key: value for key, _, value in (field.partition("=") for field in plan.fields)}
    run = make_run(find_recipe(recipe), {"heldout_every": "10", **given, "seed": str(seed)})
    return replace(run, steps=_NO_LIMIT, max_generated_tokens=plan.tokens)


def _run_all(plan: Plan, jobs: int, refresh: Callable[[], None]) -> None:
    """In this process one after the other, or side by side in processes of their own."""
    if jobs == 1:
        for recipe, seed in plan.wanted:
            _run_one(plan, recipe, seed, (_Refresh(refresh),))
            refresh()
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        running: set[Future[None]] = {pool.submit(_run_one, plan, *which) for which in plan.wanted}
        try:
            while running:
                done, running = wait(running, timeout=1.0)
                refresh()
                for each in done:
                    each.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_one(plan: Plan, recipe: str, seed: int, watchers: Sequence[Watcher] = ()) -> None:
    hush()
    summary = launch(_built(plan, recipe, seed), plan.folder, plan.run_folder(recipe, seed).path.name, watchers)
    if not summary["is_complete"]:
        raise StropError(f"{recipe} of seed {seed} was stopped at step {summary['steps']}: nothing can be compared")


@dataclass(frozen=True)
class _Refresh:
    """A watcher that lets the table look again."""

    refresh: Callable[[], None]

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.refresh()


def live_table(plan: Plan) -> Table:
    """How far every recipe is, read from its run folders."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("recipe", "runs", "tokens", "reward", "held-out", "length"):
        table.add_column(column, justify="left" if column == "recipe" else "right")
    for recipe in plan.recipes:
        rows = [_rows(plan, recipe, seed) for seed in range(plan.seeds)]
        spent = [_last(each, "tokens_generated") or 0.0 for each in rows]
        done = sum(tokens >= plan.tokens for tokens in spent)
        shares = [value for each in rows if (value := _last(each, "heldout")) is not None]
        figures = [
            [value for each in rows if (value := _last(each, name)) is not None] for name in ("reward", "length")
        ]
        table.add_row(
            recipe,
            f"{done}/{plan.seeds}",
            f"{sum(spent) / (plan.tokens * plan.seeds):.0%}",
            _mean(figures[0], "{:.3f}"),
            interval(share_over_seeds(shares)) if shares else "–",
            _mean(figures[1], "{:.1f}"),
        )
    return table


def _mean(values: Sequence[float], form: str) -> str:
    return form.format(sum(values) / len(values)) if values else "–"


def _rows(plan: Plan, recipe: str, seed: int) -> list[dict[str, Any]]:
    path = plan.run_folder(recipe, seed).metrics
    return read_rows(path) if path.is_file() else []


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return next((float(row[name]) for row in reversed(rows) if name in row), None)


def over_seeds(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Mean and 95% interval; no interval from one seed."""
    if len(values) < 2:
        return values[0], None, None
    found = paired(values, [0.0] * len(values))
    return found.mean, found.low, found.high


def share_over_seeds(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The same of shares, whose interval ends at 0 and 1."""
    mean, low, high = over_seeds(values)
    return mean, None if low is None else max(low, 0.0), None if high is None else min(high, 1.0)


def summarize(plan: Plan) -> dict[str, Any]:
    """Held-out accuracy of every recipe by seed, with intervals, and paired differences against the first."""
    summaries = {
        recipe: [json.loads(plan.run_folder(recipe, seed).summary.read_text()) for seed in range(plan.seeds)]
        for recipe in plan.recipes
    }
    after = {recipe: [float(each["heldout_after"]) for each in found] for recipe, found in summaries.items()}
    first = plan.recipes[0]
    recipes = {
        recipe: {
            "before": sum(float(each["heldout_before"]) for each in found) / len(found),
            "after": _named(share_over_seeds(after[recipe])),
            "against_first": None
            if recipe == first
            else _named(over_seeds([a - b for a, b in zip(after[recipe], after[first], strict=True)])),
            "by_seed": after[recipe],
            "steps": [each["steps"] for each in found],
            "tokens_generated": [each["tokens_generated"] for each in found],
            "seconds": [each["seconds"] for each in found],
        }
        for recipe, found in summaries.items()
    }
    return {"tokens": plan.tokens, "seeds": plan.seeds, "fields": list(plan.fields), "recipes": recipes}


def _named(found: tuple[float, float | None, float | None]) -> dict[str, float | None]:
    return dict(zip(("mean", "low", "high"), found, strict=True))


def page_of(plan: Plan, summary: Mapping[str, Any]) -> Path:
    """compare.html."""
    rows = [
        Row(
            recipe,
            plan.seeds,
            found["before"],
            _unnamed(found["after"]),
            _unnamed(found["against_first"]) if found["against_first"] else None,
            sum(found["seconds"]) / 60,
        )
        for recipe, found in summary["recipes"].items()
    ]
    panels = [
        Panel(title, note, tuple(_line(plan, recipe, metric) for recipe in plan.recipes), is_share)
        for title, metric, note, is_share in _PANELS
    ]
    chosen = f" · {' '.join(plan.fields)}" if plan.fields else ""
    words = f"{plan.tokens:,} generated tokens per run, {plan.seeds} seeds{chosen}"
    return write_page(plan.folder / "compare.html", " vs ".join(plan.recipes), words, rows, panels)


def _unnamed(found: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    return float(found["mean"]), found["low"], found["high"]


def _line(plan: Plan, recipe: str, metric: str) -> Line:
    """A recipe's curve, averaged over seeds at the same numbers of tokens."""
    curves = [_curve(_rows(plan, recipe, seed), metric) for seed in range(plan.seeds)]
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return Line(recipe, ())
    first, last = max(tokens[0] for tokens, _ in curves), min(tokens[-1] for tokens, _ in curves)
    grid = np.linspace(first, last, _GRID)
    table = np.stack([np.interp(grid, tokens, values) for tokens, values in curves])  # [S, P]
    points = []
    for place, column in zip(grid.tolist(), table.T.tolist(), strict=True):
        mean, low, high = (share_over_seeds if metric == "heldout" else over_seeds)(column)
        points.append((place, mean, mean if low is None else low, mean if high is None else high))
    return Line(recipe, tuple(points))


def _curve(rows: Sequence[Mapping[str, Any]], metric: str) -> tuple[list[float], list[float]]:
    """Tokens and values; smoothed where every step has one."""
    spent, tokens, values = 0.0, list[float](), list[float]()
    for row in rows:
        spent = float(row.get("tokens_generated", spent))
        if metric in row and math.isfinite(row[metric]):
            tokens.append(spent)
            values.append(float(row[metric]))
    if metric == "heldout":
        return tokens, values
    reach = max(1, len(values) // 16)
    smooth = [float(np.mean(values[max(0, i - reach) : i + reach + 1])) for i in range(len(values))]
    return tokens, smooth
