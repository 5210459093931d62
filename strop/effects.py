"""Experiments: does a mechanism do what its paper claims, at equal generated tokens, over seeds, against two controls?

An experiment is a file `effects/KEY.py` that defines `experiment`; its result goes to `effects/results/KEY.json`.
A null or negative result is a result.
"""

from __future__ import annotations

import datetime
import json
import math
import multiprocessing
import platform
import runpy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from strop.errors import ConfigurationError, StropError, nearest
from strop.run import Run
from strop.start.launch import launch

ARMS = ("treatment", "control", "negative")
_NO_LIMIT = 1_000_000_000  # steps: the token budget ends an arm
# two-sided 95% quantiles of Student's t by degrees of freedom; beyond them within 1% of the last
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

Arm = Callable[[int], Run]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """A claim and the runs that test it; each arm makes its run from a seed."""

    key: str  # of papers.tsv
    claim: str
    treatment: Arm
    control: Arm  # the same without the mechanism, or what the paper compares with
    negative: Arm  # the mechanism without what it lives from; must not show the effect
    tokens: int  # generated, by each arm of each seed
    metric: str = "heldout_after"  # a figure of summary.json
    higher_is_better: bool = True
    smallest: float = 0.02  # a difference below this would not matter
    folder: Path | None = None  # where its file is, once loaded from one; other processes load it from there, too

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigurationError(f"experiment {self.key} needs tokens >= 1, got {self.tokens}")


@dataclass(frozen=True)
class Difference:
    """A mean over paired seeds with its 95% interval."""

    mean: float
    low: float
    high: float


def load_experiment(folder: Path, key: str) -> Experiment:
    """The experiment of a key."""
    path = folder / f"{key}.py"
    if not path.is_file():
        found = [each.stem for each in folder.glob("*.py")]
        hint = nearest(key, found) if found else "it holds none"
        raise ConfigurationError(f"there is no experiment {key!r} in {folder}: {hint}")
    experiment = runpy.run_path(str(path)).get("experiment")
    if not isinstance(experiment, Experiment):
        raise ConfigurationError(f"{path} defines no `experiment`")
    if experiment.key != key:
        raise ConfigurationError(f"{path} is the experiment of {experiment.key!r}: its file name must be its key")
    return replace(experiment, folder=folder)


def run_experiment(
    experiment: Experiment,
    seeds: Sequence[int],
    root: Path,
    tell: Callable[[str, int, Figures], None] = lambda arm, seed, figures: None,
    jobs: int = 1,
) -> Figures:
    """All arms over all seeds, `jobs` of them side by side, each then in a process of its own; returns the result."""
    if len(seeds) < 2:
        raise ConfigurationError(f"an interval over seeds needs at least 2 seeds, got {len(seeds)}")
    wanted = [(arm, seed) for seed in seeds for arm in ARMS]
    made: dict[tuple[str, int], Figures] = {}

    def note(which: tuple[str, int], figures: Figures) -> None:
        made[which] = figures
        tell(*which, figures)

    if jobs > 1:
        _run_apart(experiment, wanted, root, note, jobs)
    else:
        for which in wanted:
            note(which, _run_arm(experiment, *which, root))
    return judge(experiment, seeds, {arm: [made[arm, seed] for seed in seeds] for arm in ARMS})


def _run_apart(
    experiment: Experiment,
    wanted: Sequence[tuple[str, int]],
    root: Path,
    note: Callable[[tuple[str, int], Figures], None],
    jobs: int,
) -> None:
    """Arms are functions of a file and cannot be sent to a process: each loads the file itself."""
    if experiment.folder is None:
        raise ConfigurationError(f"only an experiment of a file can run side by side, and {experiment.key} is of none")
    folder, key, tokens = experiment.folder, experiment.key, experiment.tokens
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        begun: dict[Future[Figures], tuple[str, int]] = {
            pool.submit(_load_and_run_arm, folder, key, tokens, *which, root): which for which in wanted
        }
        try:
            for each in as_completed(begun):
                note(begun[each], each.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _load_and_run_arm(folder: Path, key: str, tokens: int, arm: str, seed: int, root: Path) -> Figures:
    return _run_arm(replace(load_experiment(folder, key), tokens=tokens), arm, seed, root)


def _run_arm(experiment: Experiment, arm: str, seed: int, root: Path) -> Figures:
    make: Arm = getattr(experiment, arm)
    run = replace(make(seed), seed=seed, steps=_NO_LIMIT, max_generated_tokens=experiment.tokens)
    summary = launch(run, root, f"{experiment.key}-{arm}-seed{seed}")
    kept = ("heldout_before", "tokens_generated", "tokens_trained", "steps", "seconds")
    if not summary["is_complete"]:
        raise StropError(f"{arm} of seed {seed} was stopped at step {summary['steps']}: half a run gives no verdict")
    if summary.get(experiment.metric) is None:
        raise ConfigurationError(f"{arm} of {experiment.key} measured no {experiment.metric}")
    return {"seed": seed, experiment.metric: summary[experiment.metric], **{name: summary[name] for name in kept}}


def judge(experiment: Experiment, seeds: Sequence[int], figures: Mapping[str, Sequence[Figures]]) -> Figures:
    """The result: figures by seed, paired differences with intervals, and what they mean for the claim."""
    values = {arm: [float(row[experiment.metric]) for row in figures[arm]] for arm in ARMS}
    effect = paired(values["treatment"], values["control"])
    beyond_chance = paired(values["treatment"], values["negative"])
    return {
        "key": experiment.key,
        "claim": experiment.claim,
        "verdict": verdict(effect, beyond_chance, experiment),
        "metric": experiment.metric,
        "difference": effect.mean,
        "low": effect.low,
        "high": effect.high,
        "against_negative": {"difference": beyond_chance.mean, "low": beyond_chance.low, "high": beyond_chance.high},
        "means": {arm: sum(numbers) / len(numbers) for arm, numbers in values.items()},
        "smallest": experiment.smallest,
        "higher_is_better": experiment.higher_is_better,
        "tokens": experiment.tokens,
        "seeds": list(seeds),
        "arms": {arm: list(figures[arm]) for arm in ARMS},
        "versions": versions(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }


def versions() -> dict[str, str]:
    """Of what a result depends on; a source tree that was never installed has none."""
    found = {"python": platform.python_version()}
    for name in ("strop", "torch", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def paired(left: Sequence[float], right: Sequence[float]) -> Difference:
    """left - right over pairs, with Student's interval for their mean."""
    differences = [a - b for a, b in zip(left, right, strict=True)]
    count = len(differences)
    mean = sum(differences) / count
    spread = math.sqrt(sum((d - mean) ** 2 for d in differences) / (count - 1))
    half = _STUDENT[min(count - 1, len(_STUDENT)) - 1] * spread / math.sqrt(count)
    return Difference(mean, mean - half, mean + half)


def verdict(effect: Difference, beyond_chance: Difference, experiment: Experiment) -> str:
    """holds: better than both controls beyond chance; does not hold: an effect that matters is ruled out."""
    sign = 1 if experiment.higher_is_better else -1
    worst, best = sorted((sign * effect.low, sign * effect.high))
    worst_beyond = min(sign * beyond_chance.low, sign * beyond_chance.high)
    if worst > 0 and worst_beyond > 0:
        return "holds"
    return "does not hold" if best < experiment.smallest else "undecided"


def write_result(folder: Path, result: Figures) -> Path:
    """`results/KEY.json`, and a table for reading beside it."""
    target = folder / "results" / f"{result['key']}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n")
    target.with_suffix(".md").write_text(as_markdown(result))
    return target


def as_markdown(result: Figures) -> str:
    """The result as a short table."""
    metric = result["metric"]
    rows = [
        f"| {seed} | " + " | ".join(f"{result['arms'][arm][index][metric]:.3f}" for arm in ARMS) + " |"
        for index, seed in enumerate(result["seeds"])
    ]
    means = "| mean | " + " | ".join(f"{result['means'][arm]:.3f}" for arm in ARMS) + " |"
    lines = [
        f"# {result['key']}: {result['verdict']}",
        "",
        result["claim"],
        "",
        f"{metric} after {result['tokens']:,} generated tokens per arm; {result['date']}.",
        "",
        f"| seed | {' | '.join(ARMS)} |",
        "|---|" + "---|" * len(ARMS),
        *rows,
        means,
        "",
        f"Treatment minus control: {_interval(result)}. "
        f"Treatment minus negative control: {_interval(result['against_negative'])}.",
    ]
    return "\n".join(lines) + "\n"


def _interval(figures: Mapping[str, float]) -> str:
    return f"{figures['difference']:+.3f} (95% interval {figures['low']:+.3f} to {figures['high']:+.3f})"
