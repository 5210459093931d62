"""strop against TRL's GRPOTrainer: the same model, tasks, group size and cores, a few steps each in turn.

    python benchmarks/against_trl.py [--json] [--threads 1 2] [--rounds 5] [--repetitions 3] [--workload even heavy]

Both train synchronously, one optimizer step per 64 fresh completions (8 tasks x 8). On `even` nearly all completions
have 32
tokens; on `heavy` a completion outlives n tokens with probability 8 / n, so that the longest has 16 times the median.
Each
side is judged by its best thread setting. The `ratio` is strop's samples/s over TRL's on `even`, which is the harder
one; `ratio_heavy` is that on `heavy`; `two_processes` is strop with lag 4, its engine in a process of its own with one
thread, right before and right after the others took turns; its trainer too is judged by its best thread setting. With
several `--repetitions` each ratio is their mean, and they stand beside it: hours differ more than rounds do.
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
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from turns import Worker
from workload import GROUP_SIZE, GROUPS_PER_STEP, WORKLOADS, Workload, prepare

HERE = Path(__file__).parent
SIDES = ("strop", "trl")
NEED = {"even": 1.5, "heavy": 4.0}
Turn: TypeAlias = list[tuple[float, float]]  # steps: seconds on the wall, and of cores
Seconds: TypeAlias = dict[tuple[str, int], list[Turn]]  # by side and threads
_STEPS = {"even": 2, "heavy": 1}  # of one turn
_ROUNDS = {"even": 8, "heavy": 6}
_ALONE_STEPS = 24


def main() -> int:
    arguments = _arguments()
    figures = {name: repeated(WORKLOADS[name], arguments) for name in arguments.workload}
    result = {
        "benchmark": "against_trl",
        "ratio": figures[arguments.workload[0]]["ratio"],
        **{f"ratio_{name}": of["ratio"] for name, of in figures.items()},
        "workloads": figures,
        "is_reached": all(of["ratio"] >= NEED[name] for name, of in figures.items()),
        **circumstances(),
    }
    print(json.dumps(result) if arguments.json else table(figures))
    return 0


def repeated(workload: Workload, arguments: argparse.Namespace) -> dict[str, Any]:
    return combined([compare(workload, arguments.threads, arguments.rounds) for _ in range(arguments.repetitions)])


def combined(repetitions: list[dict[str, Any]]) -> dict[str, Any]:
    """The last one's figures, with the means of all in place of its ratios."""
    ratios = [each["ratio"] for each in repetitions]
    apart = [each["two_processes"]["ratio"] for each in repetitions]
    last = repetitions[-1]
    return last | {
        "ratio": round(statistics.fmean(ratios), 3),
        "ratio_by_repetition": ratios,
        "two_processes": last["two_processes"] | {"ratio": round(statistics.fmean(apart), 3), "by_repetition": apart},
    }


def compare(workload: Workload, threads: list[int], rounds: int) -> dict[str, Any]:
    """Both sides in turn, every thread setting; the first turn of each is thrown away."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(sys.stderr):
        folder = Path(name)
        prepare(folder, workload)
        with (folder / "log").open("w+") as log:
            workers = {
                side: Worker(HERE / f"{side}_side.py", folder, workload.name, max(threads), log) for side in SIDES
            }
            try:
                apart = {count: [_two_processes(folder, workload.name, count)] for count in threads}
                seconds = _in_turn(workers, threads, _STEPS[workload.name], rounds or _ROUNDS[workload.name])
                for count in threads:
                    apart[count].append(_two_processes(folder, workload.name, count))
                lengths = {side: worker.finish() for side, worker in workers.items()}
            except RuntimeError as error:
                log.seek(0)
                raise SystemExit(f"{error}\n{log.read()[-4000:]}") from None
    figures = figures_of(seconds, lengths)
    best = max(apart, key=lambda count: statistics.fmean(apart[count]))
    faster = statistics.fmean(apart[best]) / figures["sides"]["trl"]["samples_per_second"]
    rates = {str(count): [round(rate, 2) for rate in found] for count, found in apart.items()}
    return figures | {"two_processes": {"ratio": round(faster, 3), "threads": best, "samples_per_second": rates}}


def _two_processes(folder: Path, name: str, threads: int) -> float:
    """Samples per second of strop with lag 4 and so many threads for its trainer; the others wait meanwhile."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        for part in ("model", "tasks.jsonl"):
            (Path(root) / part).symlink_to(folder / part)
        command = [sys.executable, str(HERE / "strop_side.py"), root, name, str(_ALONE_STEPS), str(threads)]
        episode = os.environ | {"OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(command, capture_output=True, text=True, env=episode)
    if done.returncode:
        raise RuntimeError(f"strop in two processes ended with {done.returncode}: {done.stderr[-2000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["samples_per_second"])


def _in_turn(workers: dict[str, Worker], threads: list[int], steps: int, rounds: int) -> Seconds:
    seconds: Seconds = {(side, n): [] for n in threads for side in workers}
    for _ in range(rounds + 1):
        for side, count in seconds:
            seconds[side, count].append(workers[side].steps(count, steps))
    return {key: turns[1:] for key, turns in seconds.items()}


def figures_of(seconds: Seconds, lengths: dict[str, list[int]]) -> dict[str, Any]:
    """Samples per second of each side at its best thread setting, and by how much one is faster."""
    rates = {key: rate_of(turns) for key, turns in seconds.items()}
    busy = {side: [core for turn in seconds[side, min(n for _, n in seconds)] for _, core in turn] for side in SIDES}
    best = {side: max((key for key in rates if key[0] == side), key=lambda key: rates[key]) for side in SIDES}
    pairs = zip(*(seconds[best[side]] for side in SIDES), strict=True)
    by_round = sorted(sum(wall for wall, _ in theirs) / sum(wall for wall, _ in ours) for ours, theirs in pairs)
    return {
        "ratio": round(rates[best["strop"]] / rates[best["trl"]], 3),
        "ratio_by_round": [round(ratio, 2) for ratio in by_round],
        "ratio_of_core_seconds": round(sum(busy["trl"]) / sum(busy["strop"]), 3),  # with the fewest threads
        "sides": {
            side: {
                "samples_per_second": round(rates[best[side]], 2),
                "threads": best[side][1],
                "by_threads": {str(n): round(rate, 2) for (whose, n), rate in rates.items() if whose == side},
                "seconds_per_step": [round(wall, 3) for turn in seconds[best[side]] for wall, _ in turn],
                "core_seconds_per_step": [round(core, 3) for core in busy[side]],
                "length": length_figures(lengths[side]),
            }
            for side in SIDES
        },
    }


def rate_of(turns: list[Turn]) -> float:
    """Samples per second over all steps: a step with a long completion counts with all its time."""
    steps = [wall for turn in turns for wall, _ in turn]
    return GROUPS_PER_STEP * GROUP_SIZE * len(steps) / sum(steps)


def length_figures(lengths: list[int]) -> dict[str, float]:
    return {
        "median": statistics.median(lengths),
        "mean": round(statistics.fmean(lengths), 1),
        "longest": max(lengths),
        "completions": len(lengths),
    }


def table(figures: dict[str, Any]) -> str:
    return "\n".join(line for name, of in figures.items() for line in _rows(name, of))


def _rows(name: str, of: dict[str, Any]) -> Iterator[str]:
    yield f"{name:<8}{'samples/s':>10}{'threads':>9}{'s/step':>8}{'median':>8}{'mean':>7}{'longest':>9}"
    for side, figures in of["sides"].items():
        length, step = figures["length"], statistics.median(figures["seconds_per_step"])
        yield (
            f"  {side:<6}{figures['samples_per_second']:>10.1f}{figures['threads']:>9}{step:>8.2f}"
            f"{length['median']:>8.0f}{length['mean']:>7.1f}{length['longest']:>9}"
        )
    low, high = of["ratio_by_round"][0], of["ratio_by_round"][-1]
    yield (
        f"  ratio {of['ratio']:.2f} (by repetition {_listed(of['ratio_by_repetition'])}, by round of the last "
        f"{low:.2f} to {high:.2f}; at least {NEED[name]} is wanted)"
    )
    yield f"  ratio of core seconds {of['ratio_of_core_seconds']:.2f}"
    apart = of["two_processes"]
    yield (
        f"  two processes, lag 4: ratio {apart['ratio']:.2f} (by repetition {_listed(apart['by_repetition'])}), "
        f"samples/s by threads {apart['samples_per_second']}\n"
    )


def _listed(figures: list[float]) -> str:
    return ", ".join(f"{figure:.2f}" for figure in figures)


def circumstances() -> dict[str, Any]:
    """When, where and with what."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": f"{_processor()}, {len(os.sched_getaffinity(0))} CPU cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("strop", "trl", "torch", "transformers")},
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="settings that both sides try")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each side (even 8, heavy 6)")
    parser.add_argument("--repetitions", type=int, default=1, help="of everything, one after the other")
    parser.add_argument("--workload", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
