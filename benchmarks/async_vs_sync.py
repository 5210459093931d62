"""Asynchronous against synchronous training on the same two cores, with completions of very different lengths.

    python benchmarks/async_vs_sync.py [--json] [--quick] [--seeds 4] [--repetitions 1] [--steps 40] [--keep FOLDER]
                                       [--arms NAME ...] [--before FOLDER]

The environment wants numbers counted down, `57>04`; how far is Pareto (see counting.py), so that the longest completion
has 20
times the median's tokens. A pocket model that half knows it is trained further by GRPO, with the same seeds, steps and
rollouts per step in each setting: synchronous with one thread, with two (and 64 rows), and in two processes;
asynchronous with lag 4 in two processes, the trainer with one thread or with two. Settings take turns, each run in a
process of its own. Counted are the steps between the sixth and the last, so no start-up and no evaluation. The `ratio`
is trained tokens per second of the best asynchronous setting over the best synchronous one; its interval is over seeds
(each the mean of its repetitions), and what each repetition alone would have said stands beside it: machines differ,
and so do hours. With `--before`, a folder with another checkout of strop, the asynchronous settings also run with that
one, in the same turns; `over_before` is how much faster this one is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from counting import MOST_TOKENS, Counting, half_taught

from strop.control.samplers.uniform import Uniform
from strop.evaluation import Evaluation
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.launch.running.launch import launch
from strop.placement.place import place
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.stats.intervals import paired
from strop.storage.ledger.ledger import Ledger
from strop.types import Metrics

GROUPS_PER_STEP, GROUP_SIZE = 16, 8
LAG, CORES, NEED = 4, 2, 1.5
_WARM = LAG + 2  # steps that are not counted: until then the asynchronous pipeline fills
_NEVER = 1 << 30
_BEFORE = "before: "  # an arm that runs with the other checkout


@dataclass(frozen=True)
class Arm:
    """A way to use two cores; `threads` are those of the process that trains, `rows` are decoded together.

    A core decodes 64 rows at nearly as many tokens per second as 128, and each of them nearly twice as fast: long
    completions are over sooner. A synchronous step is quicker with all of its 128 rollouts of once: none starts late.
    """

    lag: int
    where: str
    threads: int
    rows: int = GROUPS_PER_STEP * GROUP_SIZE


ARMS = {
    "sync, 1 thread": Arm(0, "inline", 1),
    "sync, 2 threads": Arm(0, "inline", 2),
    "sync, 2 threads, 64": Arm(0, "inline", 2, 64),
    "sync, 2 processes": Arm(0, "process", 2),
    "async, 1 + 1 threads": Arm(LAG, "process", 1, 64),
    "async, 2 + 1 threads": Arm(LAG, "process", 2, 64),
}


@dataclass(frozen=True)
class Mark:
    """Where a run stood after a step; seconds on the wall, and those that each process kept a core busy."""

    step: int
    wall: float
    trainer: float
    engine: float
    tokens: float


@dataclass
class Stopwatch:
    """A watcher that notes clocks."""

    run: Run
    marks: list[Mark] = field(default_factory=list)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        engine = _core_seconds(getattr(self.run.engine, "pid", 0))
        tokens = metrics.get("tokens_trained", 0.0)
        self.marks.append(Mark(step, time.perf_counter(), time.process_time(), engine, tokens))


def _core_seconds(pid: int) -> float:
    path = Path(f"/proc/{pid}/stat")
    if not pid or not path.is_file():
        return 0.0
    user, system = path.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def recipe(arm: Arm, model: Path, seed: int, steps: int, tasks: int) -> Run:
    """GRPO, clipped against the policy that sampled, which is right with and without lag."""
    setting = Setting(
        model=str(model),
        seed=seed,
        steps=steps,
        groups_per_step=GROUPS_PER_STEP,
        group_size=GROUP_SIZE,
        max_tokens=MOST_TOKENS,
        lag=arm.lag,
        checkpoint_every=_NEVER,
        threads=arm.threads,
    )
    envs = (Counting(seed=seed),)
    run = replace(
        grpo(setting),
        envs=envs,
        sampler=Uniform(envs),
        engine=TorchEngine(arm.rows, keep_cache=arm.lag > 0),
        evaluation=Evaluation(every=0, tasks=tasks),
    )
    with warnings.catch_warnings():  # without lag the processes take turns, so they do not fight for cores
        warnings.simplefilter("ignore" if arm.lag == 0 else "default")
        return place(run, arm.where)


def measure(arm: Arm, model: Path, seed: int, steps: int, tasks: int) -> dict[str, Any]:
    """One run and its figures."""
    run = recipe(arm, model, seed, steps, tasks)
    watch = Stopwatch(run)
    with tempfile.TemporaryDirectory() as root:
        summary = launch(run, Path(root), "run", [watch])
        lags, lengths = trained_on(Path(root) / "run" / "ledger.db")
    kept = ("heldout_before", "heldout_after", "tokens_trained")
    return {
        **rates(watch.marks[_WARM], watch.marks[-2], arm),
        **{name: summary[name] for name in kept},
        "lags": lags,
        "lengths": lengths,
    }


def rates(first: Mark, last: Mark, arm: Arm) -> dict[str, Any]:
    """Figures of the steps between two marks."""
    wall, count, tokens = last.wall - first.wall, last.step - first.step, last.tokens - first.tokens
    trainer, engine = last.trainer - first.trainer, last.engine - first.engine
    return {
        "samples_per_second": count * GROUPS_PER_STEP * GROUP_SIZE / wall,
        "tokens_per_second": tokens / wall,
        "tokens_per_step": tokens / count,
        "seconds_per_step": wall / count,
        "trainer_core_seconds_per_step": trainer / count,
        "engine_core_seconds_per_step": engine / count if arm.where == "process" else None,
        "trainer_idle": 1 - trainer / wall,  # below 0 where two threads work at once
        "engine_idle": 1 - engine / wall if arm.where == "process" else None,
        "cores_idle": 1 - (trainer + engine) / wall / CORES,
    }


def trained_on(path: Path) -> tuple[dict[int, int], list[int]]:
    """Trained tokens by how many versions old they were, and how many tokens each completion had."""
    ledger = Ledger(path, read_only=True)
    lags: Counter[int] = Counter()
    lengths = []
    for step in ledger.trained_steps():
        for rollout in (rollout for group in ledger.trained_groups(step) for rollout in group.rollouts):
            lengths.append(rollout.num_tokens)
            for turn in rollout.turns:
                lags.update((step - 1 - turn.versions).tolist())
    ledger.close()
    return dict(sorted(lags.items())), lengths


@dataclass(frozen=True)
class Plan:
    """What is run: every arm with every seed, in turn, so many times."""

    seeds: int
    repetitions: int
    steps: int
    tasks: int
    arms: tuple[str, ...]
    before: Path | None = None

    @property
    def names(self) -> list[str]:
        before = [_BEFORE + name for name in self.arms if ARMS[name].lag] if self.before else []
        return [*self.arms, *before]


def compare(plan: Plan, keep: Path) -> dict[str, Any]:
    """Every setting with every seed, in turn; what `keep` has of an earlier comparison is not run again."""
    model = half_taught()
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in plan.names}
    for repetition in range(plan.repetitions):
        for seed in range(plan.seeds):
            for name in plan.names:
                title = f"{name}, repetition {repetition}, seed {seed}, {plan.steps} steps".replace(":", "")
                if not (kept := keep / f"{title}.json").is_file():
                    kept.write_text(json.dumps(_apart(name, model, seed, plan)))
                runs[name].append(json.loads(kept.read_text()))
                print(f"{title}: {runs[name][-1]['tokens_per_second']:.0f} tokens/s", file=sys.stderr)
    asked = {"seeds": plan.seeds, "repetitions": plan.repetitions, "steps": plan.steps}
    return figures_of(runs, plan.seeds) | asked | circumstances()


def _apart(name: str, model: Path, seed: int, plan: Plan) -> dict[str, Any]:
    """One run in a process of its own, so that none inherits another's threads or memory."""
    variables = os.environ | {"HF_HUB_OFFLINE": "1"}
    if name.startswith(_BEFORE):
        assert plan.before is not None
        variables |= {"PYTHONPATH": str(plan.before.resolve())}
    with tempfile.TemporaryDirectory() as folder:
        target, log = Path(folder) / "figures.json", Path(folder) / "log"
        words = [name.removeprefix(_BEFORE), model, seed, plan.steps, plan.tasks, target]
        command = [sys.executable, str(Path(__file__).resolve()), "--one", *map(str, words)]
        with log.open("w") as said:
            # elsewhere, or its processes would take the checkout that they are started in
            done = subprocess.run(command, stdout=said, stderr=said, env=variables, cwd=folder)
        if done.returncode:
            raise SystemExit(f"{name}, seed {seed}, ended with {done.returncode}:\n{log.read_text()[-4000:]}")
        figures: dict[str, Any] = json.loads(target.read_text())
        return figures


def figures_of(runs: dict[str, list[dict[str, Any]]], seeds: int) -> dict[str, Any]:
    """How much faster, whether as good, and who waited."""
    arms = {name: _of_arm(each, seeds) for name, each in runs.items()}
    speed = {name: arm["tokens_per_second"] for name, arm in arms.items() if name in ARMS}
    ours, best = (
        max((n for n in speed if bool(ARMS[n].lag) == is_async), key=lambda n: speed[n]) for is_async in (1, 0)
    )
    before = _BEFORE + ours
    lengths = sorted(length for each in runs.values() for run in each for length in run["lengths"])
    after = {name: by_seed(runs[name], "heldout_after", seeds) for name in (ours, best)}
    pairs = list(zip(runs[ours], runs[best], strict=True))
    result = {
        "benchmark": "async_vs_sync",
        "ratio": arms[ours]["tokens_per_second"] / arms[best]["tokens_per_second"],
        "ratio_of_samples": arms[ours]["samples_per_second"] / arms[best]["samples_per_second"],
        **{f"ratio_{name}": found for name, found in ratios(runs[ours], runs[best], seeds).items()},
        "over_before": ratios(runs[ours], runs[before], seeds) if before in runs else None,
        "tokens_ratio": sum(a["tokens_trained"] for a, _ in pairs) / sum(b["tokens_trained"] for _, b in pairs),
        "best_async": ours,
        "best_sync": best,
        "heldout_difference": interval([a - b for a, b in zip(*after.values(), strict=True)]),
        "lag_max": max(lag for lag in arms[ours]["lags"]),
        "lengths": {
            "median": statistics.median(lengths),
            "mean": statistics.fmean(lengths),
            "longest": lengths[-1],
            "longest_over_median": lengths[-1] / statistics.median(lengths),
        },
        "arms": arms,
    }
    return result | {"is_reached": _is_reached(result)}


def ratios(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], seeds: int) -> dict[str, Any]:
    """By how much one is faster: by seed with the interval over seeds, and by repetition of them all."""
    pairs = [(a["tokens_per_second"], b["tokens_per_second"]) for a, b in zip(ours, theirs, strict=True)]
    of_seeds = [_faster(pairs[seed::seeds]) for seed in range(seeds)]
    return {
        "by_seed": of_seeds,
        "interval": interval(of_seeds),
        "by_repetition": [_faster(pairs[start : start + seeds]) for start in range(0, len(pairs), seeds)],
    }


def _faster(pairs: list[tuple[float, float]]) -> float:
    return statistics.fmean(ours for ours, _ in pairs) / statistics.fmean(theirs for _, theirs in pairs)


def _is_reached(result: dict[str, Any]) -> bool:
    _, low, high = result["heldout_difference"]
    is_as_good = low <= 0 <= high
    is_heavy = result["lengths"]["longest_over_median"] >= 16
    return bool(result["ratio"] >= NEED and is_as_good and is_heavy and result["lag_max"] <= LAG)


def by_seed(runs: list[dict[str, Any]], name: str, seeds: int) -> list[float]:
    """The mean of a seed's repetitions: they are no further seeds."""
    return [statistics.fmean(run[name] for run in runs[seed::seeds]) for seed in range(seeds)]


def _of_arm(runs: list[dict[str, Any]], seeds: int) -> dict[str, Any]:
    """Means over seeds; accuracies with their intervals."""
    numbers = [name for name, value in runs[0].items() if isinstance(value, float) and "heldout" not in name]
    lags: Counter[int] = Counter()
    for run in runs:
        lags.update({int(lag): count for lag, count in run["lags"].items()})
    return {
        **{name: statistics.fmean(run[name] for run in runs) for name in numbers},
        **{name: interval(by_seed(runs, name, seeds)) for name in ("heldout_before", "heldout_after")},
        "heldout_after_by_seed": by_seed(runs, "heldout_after", seeds),
        "tokens_trained": [run["tokens_trained"] for run in runs],
        "lags": {lag: count / lags.total() for lag, count in sorted(lags.items())},
    }


def interval(values: list[float]) -> list[float]:
    """Mean, low, high over seeds (95%, Student); a single seed has no interval."""
    if len(values) < 2:
        return [values[0]] * 3
    found = paired(values, [0.0] * len(values))
    return [found.mean, found.low, found.high]


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{'':20}{'samples/s':>10}{'tokens/s':>10}{'s/step':>8}{'trainer':>9}{'engine':>8}{'cores':>7}"
        f"{'held-out before and after (95%)':>46}",
        f"{'':48}{'idle':>9}{'idle':>8}{'idle':>7}",
    ]
    for name, arm in result["arms"].items():
        engine = f"{arm['engine_idle']:.0%}" if "engine_idle" in arm else "-"
        lines.append(
            f"{name:20}{arm['samples_per_second']:>10.1f}{arm['tokens_per_second']:>10.0f}"
            f"{arm['seconds_per_step']:>8.2f}{max(arm['trainer_idle'], 0):>9.0%}{engine:>8}{arm['cores_idle']:>7.0%}"
            f"{_shown(arm['heldout_before']):>24}{_shown(arm['heldout_after']):>24}"
        )
    length, lags = result["lengths"], result["arms"][result["best_async"]]["lags"]
    return "\n".join(
        [
            *lines,
            f"lengths: median {length['median']:.0f}, mean {length['mean']:.1f}, longest {length['longest']}",
            "tokens by lag: " + ", ".join(f"{lag}: {share:.0%}" for lag, share in lags.items()),
            f"held-out, {result['best_async']} minus {result['best_sync']}: {_shown(result['heldout_difference'])}; "
            f"trained tokens {result['tokens_ratio']:.2f} times",
            f"ratio {_shown(result['ratio_interval'])}, {result['best_async']} against {result['best_sync']} (by seed "
            f"{_listed(result['ratio_by_seed'])}; by repetition {_listed(result['ratio_by_repetition'])}; of samples/s "
            f"{result['ratio_of_samples']:.2f}; at least {NEED} is wanted)",
            *([_over_before(result["over_before"])] if result["over_before"] else []),
        ]
    )


def _over_before(found: dict[str, Any]) -> str:
    return (
        f"over the other checkout {_shown(found['interval'])} (by seed {_listed(found['by_seed'])}; by repetition "
        f"{_listed(found['by_repetition'])})"
    )


def _listed(figures: list[float]) -> str:
    return ", ".join(f"{figure:.2f}" for figure in figures)


def _shown(figures: list[float]) -> str:
    return f"{figures[0]:.3f} ({figures[1]:.3f} to {figures[2]:.3f})"


def circumstances() -> dict[str, Any]:
    """When, where and with what."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": f"{len(os.sched_getaffinity(0))} CPU cores ({platform.machine()})",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("strop", "torch", "transformers")},
    }


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        name, model, seed, steps, tasks, target = sys.argv[2:]
        figures = measure(ARMS[name], Path(model), int(seed), int(steps), int(tasks))
        Path(target).write_text(json.dumps(figures))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="one seed and few steps: rough")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=1, help="of all seeds, one after the other")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS), help="settings that are run")
    parser.add_argument("--before", type=Path, help="another checkout of strop, run in the same turns")
    parser.add_argument("--keep", type=Path, help="a folder for the figures of each run: goes on where it was stopped")
    arguments = parser.parse_args()
    with redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as folder:
        plan = Plan(arguments.seeds, arguments.repetitions, arguments.steps, 256, arguments.arms, arguments.before)
        if arguments.quick:
            plan = replace(plan, seeds=1, repetitions=1, steps=16, tasks=64)
        (keep := arguments.keep or Path(folder)).mkdir(parents=True, exist_ok=True)
        result = compare(plan, keep)
    print(json.dumps(result) if arguments.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
