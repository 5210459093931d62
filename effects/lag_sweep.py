"""How much staleness does each loss bear? Lags 0 to 64 with and without an importance correction, on the pocket model.

    python effects/lag_sweep.py [--steps 160] [--seeds 3] [--lags 0 1 4 16 64] [--jobs 16]

Every token is trained exactly `lag` versions after it was written, or as many as there are yet, so that runs differ in
nothing else and are the same each time. Writes results/lag_sweep.json and .md beside this file.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from strop.cli.models import hush
from strop.control.admission.exact_lag import ExactLag
from strop.errors import StropError
from strop.evaluation import Evaluation
from strop.launch.running.launch import launch
from strop.observe.run_files.provenance import versions
from strop.recipes.setting import Setting
from strop.run import Run
from strop.stats.intervals import paired
from strop.storage.run_folder import read_rows
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Masked, SequenceTruncated, Truncated
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce

HERE = Path(__file__).parent


LOSSES: dict[str, Callable[[Run], Run]] = {
    "uncorrected": lambda run: replace(run, losses=(Reinforce(),)),
    "truncated": lambda run: replace(run, losses=(Reinforce(),), correction=Truncated()),
    "masked": lambda run: replace(run, losses=(Reinforce(),), correction=Masked()),
    "sequence": lambda run: replace(run, losses=(Reinforce(),), correction=SequenceTruncated()),
    "clip": lambda run: replace(run, losses=(Clip(),)),
}


def recipe(loss: str, lag: int, seed: int, steps: int, learning_rate: float) -> Run:
    setting = Setting(
        seed=seed,
        steps=steps,
        groups_per_step=4,
        learning_rate=learning_rate,
        checkpoint_every=steps,
    )
    run = setting.run("lag-sweep", GroupStandard(), (), admission=ExactLag(lag, steps))
    return LOSSES[loss](replace(run, evaluation=Evaluation(every=max(steps // 8, 1), tasks=100), rescore_every=0))


def measure(loss: str, lag: int, seed: int, steps: int, learning_rate: float) -> dict[str, Any]:
    """One run: where it ended, how far it fell on the way, and how far it went from what had sampled."""
    hush()
    began, stopped = time.process_time(), ""
    with tempfile.TemporaryDirectory() as root:
        try:
            launch(recipe(loss, lag, seed, steps, learning_rate), Path(root), "run")
        except StropError as error:  # one that diverges is a result too
            stopped = str(error)
        rows = read_rows(Path(root) / "run" / "metrics.jsonl")
    heldout = [row["heldout"] for row in rows if "heldout" in row]
    trained = [row for row in rows if "kl" in row]
    return {
        "loss": loss,
        "lag": lag,
        "seed": seed,
        "before": heldout[0],
        "after": heldout[-1],
        "fall": max(best - now for best, now in zip(itertools.accumulate(heldout, max), heldout, strict=True)),
        "lag_max": max(row["lag_max"] for row in trained),
        "kl_max": max(row["kl"] for row in trained),
        "grad_norm_max": max(row["grad_norm"] for row in trained),
        "stopped": stopped,
        "core_seconds": time.process_time() - began,
    }


def summarize(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per loss and lag: means over seeds, with 95% intervals, and the change against no lag, seed by seed."""
    lines = []
    lags = sorted({row["lag"] for row in rows})
    for loss, lag in itertools.product(LOSSES, lags):
        mine, fresh = _by_seed(rows, loss, lag), _by_seed(rows, loss, 0)
        both = [seed for seed in mine if seed in fresh]
        if not both:  # yet
            continue
        after = [mine[seed]["after"] for seed in mine]
        lines.append(
            {
                "loss": loss,
                "lag": lag,
                "seeds": len(mine),
                "after": interval(after),
                "against_no_lag": interval([mine[seed]["after"] - fresh[seed]["after"] for seed in both]),
                "fall": max(row["fall"] for row in mine.values()),
                "lag_max": max(row["lag_max"] for row in mine.values()),
                "kl_max": max(row["kl_max"] for row in mine.values()),
                "stopped": [row["stopped"] for row in mine.values() if row["stopped"]],
            }
        )
    return lines


def _by_seed(rows: Sequence[dict[str, Any]], loss: str, lag: int) -> dict[int, dict[str, Any]]:
    return {row["seed"]: row for row in rows if (row["loss"], row["lag"]) == (loss, lag)}


def interval(values: Sequence[float]) -> list[float]:
    """Mean, low, high; the mean alone where one seed says nothing about the spread."""
    if len(values) < 2:
        return [*values] * 3
    found = paired(values, [0.0] * len(values))
    return [found.mean, found.low, found.high]


def as_markdown(result: dict[str, Any]) -> str:
    """The result as a table."""
    head = ("loss", "lag", "held-out after (95%)", "against lag 0 (95%)", "largest fall", "lag seen", "largest KL")
    lines = [
        "# Lag sweep",
        "",
        f"Pocket model on arithmetic:4, {result['steps']} steps of 4 groups x 8, learning rate "
        f"{result['learning_rate']:g}, seeds {result['seeds']}; held-out accuracy before: {result['before']:.3f}.",
        "Every token is trained exactly `lag` versions after it was written (as many as there are yet, at the start).",
        "`uncorrected` is REINFORCE; the next three are the same with importance weights: `truncated` of tokens, cut",
        "at 2, `masked` of tokens, dropped outside 0.5 to 2, `sequence` of whole rollouts, cut at 8; `clip` is PPO's",
        "clip against the policy that sampled. Fall: from the best held-out accuracy to a later one, the largest over",
        "seeds. KL is that of the sampling policy to the trained one, the mean of a step.",
        "",
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
    ]
    for line in result["lines"]:
        after, change = line["after"], line["against_no_lag"]
        lines.append(
            f"| {line['loss']} | {line['lag']} | {after[0]:.3f} ({after[1]:.3f} to {after[2]:.3f}) "
            f"| {change[0]:+.3f} ({change[1]:+.3f} to {change[2]:+.3f}) | {line['fall']:.3f} "
            f"| {line['lag_max']:.0f} | {line['kl_max']:.3g} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lags", type=int, nargs="+", default=[0, 1, 4, 16, 64])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, each in a process with one thread")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder; what it has is not run again")
    arguments = parser.parse_args()
    target: Path = arguments.results / "lag_sweep.json"
    chosen = {"steps": arguments.steps, "learning_rate": arguments.learning_rate}
    rows = _kept(target, chosen)
    done = {(row["loss"], row["lag"], row["seed"]) for row in rows}
    # the longest first, so that no job is left alone at the end; a whole seed before the next, for early results
    wanted = itertools.product(range(arguments.seeds), sorted({0, *arguments.lags}, reverse=True), arguments.losses)
    left = [(loss, lag, seed) for seed, lag, loss in wanted if (loss, lag, seed) not in done]
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        for each in as_completed([pool.submit(measure, *which, **chosen) for which in left]):
            rows.append(row := each.result())
            print(json.dumps(row), flush=True)
            _write(target, chosen, rows)


def _kept(target: Path, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs of an earlier, interrupted sweep with the same settings."""
    found = json.loads(target.read_text()) if target.is_file() else {}
    return list(found["runs"]) if {name: found.get(name) for name in chosen} == chosen else []


def _write(target: Path, chosen: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    rows.sort(key=lambda row: (row["seed"], row["lag"], list(LOSSES).index(row["loss"])))
    result = {
        **chosen,
        "seeds": sorted({row["seed"] for row in rows}),
        "before": statistics.fmean(row["before"] for row in rows),
        "lines": summarize(rows),
        "versions": versions(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "runs": rows,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    target.with_suffix(".md").write_text(as_markdown(result))


if __name__ == "__main__":
    main()
