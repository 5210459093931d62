"""Comparison of arms of several runs each: progress, results, and one page with their curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from strop.errors import DataError
from strop.observe.metrics.tokens_to_target import Curve, area, curve
from strop.observe.report.multi_run_chart import MeanCurve, Panel, Row, interval, write_page
from strop.observe.run_files.jsonl_journals import between, last_rows
from strop.observe.run_files.run_info import read_summary
from strop.stats.intervals import Difference, Spread, over_seeds, share_over_seeds
from strop.storage.run_folder import RunFolder, read_rows

Arms: TypeAlias = Mapping[str, Sequence[RunFolder]]  # the runs of each arm by its name; in the same order of seeds

_LINE_SECONDS = 20.0  # between progress lines without a terminal
_GRID = 41  # places along the budget at which curves of several seeds are averaged
_PANELS = (
    ("Held-out accuracy", "heldout", "on tasks that are never trained", True),
    ("Reward", "reward", "mean over the policy's own rollouts of a step", False),
    ("Length", "length", "tokens per rollout", False),
    ("Entropy", "entropy", "nats per token", False),
)


def live_table(arms: Arms, tokens: int) -> Table:
    """How far every arm is, read from its run folders."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("arm", "runs", "tokens", "reward", "held-out", "length"):
        table.add_column(column, justify="left" if column == "arm" else "right")
    for name, folders in arms.items():
        rows = [read_rows(folder.metrics) for folder in folders]
        spent = [_last(each, "tokens_generated") or 0.0 for each in rows]
        shares = _known(rows, "heldout")
        table.add_row(
            name,
            f"{sum(count >= tokens for count in spent)}/{len(folders)}",
            f"{sum(min(count, tokens) for count in spent) / (tokens * len(folders)):.0%}",
            _mean(_known(rows, "reward"), "{:.3f}"),
            interval(share_over_seeds(shares)) if shares else "–",
            _mean(_known(rows, "length"), "{:.1f}"),
        )
    return table


def progress_line(arms: Arms, tokens: int) -> str:
    """The same in a line: runs that are done, and tokens of all."""
    spent = [_last(read_rows(folder.metrics), "tokens_generated") or 0.0 for each in arms.values() for folder in each]
    done, share = sum(count >= tokens for count in spent), sum(min(count, tokens) for count in spent)
    return f"{done} of {len(spent)} runs done, {share / (tokens * len(spent)):.0%} of all tokens"


@contextmanager
def shown(console: Console, arms: Arms, tokens: int) -> Iterator[Callable[[], None]]:
    """Context that yields a function which refreshes the table; without a terminal it prints a line now and then."""
    if console.is_terminal and console.file.isatty():  # notebooks force colours, also into a pipe
        with Live(live_table(arms, tokens), console=console, auto_refresh=False) as live:
            yield lambda: live.update(live_table(arms, tokens), refresh=True)
        return
    began = printed = time.monotonic()

    def refresh() -> None:
        nonlocal printed
        if time.monotonic() - printed >= _LINE_SECONDS:
            printed = time.monotonic()
            console.print(f"{printed - began:.0f} s: {progress_line(arms, tokens)}", soft_wrap=True)

    yield refresh
    console.print(live_table(arms, tokens))


def _known(runs: Sequence[Sequence[Mapping[str, Any]]], name: str) -> list[float]:
    return [value for rows in runs if (value := _last(rows, name)) is not None]


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return next((float(row[name]) for row in reversed(rows) if name in row), None)


def _mean(values: Sequence[float], form: str) -> str:
    return form.format(sum(values) / len(values)) if values else "–"


def summarize(arms: Arms) -> dict[str, Any]:
    """Held-out accuracy of every arm by seed, with intervals, and paired differences against the first."""
    found = {name: [metrics_of(folder) for folder in folders] for name, folders in arms.items()}
    first = next(iter(found))
    summary = {name: _of_arm(runs, None if name == first else found[first]) for name, runs in found.items()}
    for name, folders in arms.items():
        gain = _by_task(folders, arms[first]) if name != first else None
        summary[name]["tasks_against_first"] = None if gain is None else asdict(gain)
    return summary


def _by_task(folders: Sequence[RunFolder], first: Sequence[RunFolder]) -> Difference | None:
    """How the models at the end differ on the same tasks: an interval over tasks, and not over seeds."""
    rows, others = ([row for folder in each for row in last_rows(folder)] for each in (folders, first))
    return between(rows, others) if len(rows) == len(others) == len(folders) else None


def metrics_of(folder: RunFolder) -> dict[str, Any]:
    """What came of one run: its summary, its held-out curve (tokens, accuracies) and the area under it."""
    summary = read_summary(folder)
    if summary.get("heldout_after") is None:
        raise DataError(f"{folder.path} has no held-out accuracy after training: it is unfinished, or measured none")
    names = ["seed", "heldout_before", "heldout_after", "tokens_generated", "tokens_trained", "steps", "seconds"]
    names += ["tokens_advised"] if summary.get("tokens_advised") else []  # spent as well, though not by the policy
    names += ["target", "tokens_to_target"] if "target" in summary else []
    found = curve(folder, "heldout")
    return {**{name: summary[name] for name in names}, "heldout_area": area(found), "heldout_curve": [*found]}


def _of_arm(runs: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    after = [float(run["heldout_after"]) for run in runs]
    areas = [float(run["heldout_area"]) for run in runs]
    is_paired = first is not None and [run["seed"] for run in runs] == [run["seed"] for run in first]
    return {
        "before": sum(float(run["heldout_before"]) for run in runs) / len(runs),
        "after": _named(share_over_seeds(after)),
        "area": _named(share_over_seeds(areas)),
        "against_first": _against(runs, first, "heldout_after") if is_paired and first else None,
        "area_against_first": _against(runs, first, "heldout_area") if is_paired and first else None,
        "by_seed": after,
        "runs": list(runs),
    }


def _against(
    runs: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]], name: str
) -> dict[str, float | None]:
    return _named(over_seeds([float(a[name]) - float(b[name]) for a, b in zip(runs, first, strict=True)]))


def _named(found: Spread) -> dict[str, float | None]:
    return dict(zip(("mean", "low", "high"), found, strict=True))


def page_of(path: Path, arms: Arms, summary: Mapping[str, Any], words: str) -> Path:
    """One page: a table, then the curves of all arms laid over each other."""
    rows = [
        Row(
            name,
            len(found["by_seed"]),
            found["before"],
            _unnamed(found["after"]),
            _change(found),
            sum(run["tokens_generated"] for run in found["runs"]) / len(found["runs"]),
            sum(run["seconds"] for run in found["runs"]) / 60,
        )
        for name, found in summary.items()
    ]
    panels = [
        Panel(
            title,
            note,
            tuple(_line(n, each, metric, is_share) for n, each in arms.items()),
            is_share,
        )
        for title, metric, note, is_share in _PANELS
    ]
    return write_page(path, " vs ".join(arms), words, rows, panels)


def _change(found: Mapping[str, Any]) -> Spread | None:
    """Over seeds; over tasks where there is one seed, which has no spread of its own."""
    by_seed, by_task = found["against_first"], found["tasks_against_first"]
    if by_task is not None and len(found["by_seed"]) == 1:
        return _unnamed(by_task)
    return _unnamed(by_seed) if by_seed else None


def _unnamed(found: Mapping[str, Any]) -> Spread:
    return float(found["mean"]), found["low"], found["high"]


def _line(name: str, folders: Sequence[RunFolder], metric: str, is_share: bool) -> MeanCurve:
    return mean_line(name, [curve(folder, metric) for folder in folders], is_share, metric != "heldout")


def mean_line(name: str, curves: Sequence[Curve], is_share: bool, is_smoothed: bool = True) -> MeanCurve:
    """An arm's curve, averaged over seeds at the same places; what every step has a value of is smoothed first."""
    known = [_smoothed(each) if is_smoothed else each for each in curves if each[0]]
    if not known:
        return MeanCurve(name, ())
    first, last = max(places[0] for places, _ in known), min(places[-1] for places, _ in known)
    grid = np.linspace(first, last, _GRID)
    table = np.stack([np.interp(grid, places, values) for places, values in known])  # [S, P]
    points = []
    for place, column in zip(grid.tolist(), table.T.tolist(), strict=True):
        mean, low, high = (share_over_seeds if is_share else over_seeds)(column)
        points.append((place, mean, mean if low is None else low, mean if high is None else high))
    return MeanCurve(name, tuple(points))


def _smoothed(found: Curve) -> Curve:
    """Averaged over neighbours, since every step has a value."""
    places, values = found
    reach = max(1, len(values) // 16)
    return places, [float(np.mean(values[max(0, i - reach) : i + reach + 1])) for i in range(len(values))]
