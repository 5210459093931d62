"""How quick is the test bed: one pocket run alone, an effect of 18 of them, and where a step of 64 rollouts goes.

    python benchmarks/testbed.py --device cuda [--tokens 250000] [--seeds 6] [--jobs 0 ...] [--json] [--save NAME]

Wanted on one H200: 250,000 sampled tokens within 20 s alone, and 18 such runs (three arms, six seeds) within 240 s.
`ratio` is wanted seconds / seconds, the smaller of the two. With fewer tokens or seeds the wanted seconds shrink in
proportion. The runs are those of `effects/poise.py`, so `strop effect poise device=cuda` takes as long as the second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from machine import circumstances, output_arguments, publish
from step_parts import EVALUATION, Clock, watched

from strop.effects import Plan, find_experiment, load_experiment, run_of
from strop.launch.experiments.side_by_side import SideBySide, how_many
from strop.launch.running.launch import launch
from strop.recipes.setting import Setting
from strop.storage.run_folder import RunFolder, read_rows

ALONE, ALL, TOKENS, RUNS = 20.0, 240.0, 250_000, 18  # wanted seconds, and for what
ARM, ROLLOUTS = "treatment", 64  # of a step

_START = """
import json, sys, time
marks, last = {}, time.perf_counter()
def mark(name):
    global last
    now = time.perf_counter(); marks[name] = now - last; last = now
import torch; mark("import torch")
import transformers.models.llama.modeling_llama; mark("import transformers")
import strop.launch.running.launch; mark("import strop")
from dataclasses import replace
from pathlib import Path
from strop.cli.fields.overrides import find_recipe, make_run
run = replace(make_run(find_recipe("pocket"), {"device": sys.argv[1]}), steps=1); mark("recipe")
from strop.launch.running import launch as launching
from strop import pipeline
opened, begun, trained = launching._open, launching._begin, pipeline.learn
def after(function, name):
    def wrapped(*arguments):
        found = function(*arguments); mark(name); return found
    return wrapped
def after_await(function, name):
    async def wrapped(*arguments):
        found = await function(*arguments); mark(name); return found
    return wrapped
launching._open = after(opened, "load models, open engine and trainer")
launching._begin = after_await(begun, "version 0: publish, evaluate, save")
pipeline.learn = after(trained, "first step")
launching.launch(run, Path(sys.argv[2]), "start"); mark("last evaluation, save, summary, report")
print(json.dumps(marks))
"""


def measure_start(device: str) -> dict[str, float]:
    """From the interpreter's start to the end of `strop train pocket steps=1`, by part."""
    with tempfile.TemporaryDirectory() as root:
        began = time.perf_counter()
        command = [sys.executable, "-c", _START, device, root]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        whole = time.perf_counter() - began
    marks: dict[str, float] = json.loads(told.splitlines()[-1])
    return {"interpreter": whole - sum(marks.values()), **marks}


def measure_step(path: Path, device: str, steps: int) -> dict[str, Any]:
    """Milliseconds of a step by part, after one that warms up; evaluation by itself."""
    run = replace(run_of(path, ARM, Setting(device=device), 1), steps=steps, max_generated_tokens=0)
    run = replace(run, evaluation=replace(run.evaluation, every=0), checkpoint_every=steps)
    # others' work on shared cores does not count; beside a GPU, waiting does
    clock = Clock(time.perf_counter if device.startswith("cuda") else time.thread_time)
    marks: list[tuple[float, dict[str, float]]] = []

    class Marks:
        """Where the clock stands after every step."""

        def stepped(self, step: int, metrics: Any, timing: Any) -> None:
            marks.append((clock.now(), dict(clock.seconds)))

    with tempfile.TemporaryDirectory() as root, watched(run, clock):
        launch(run, Path(root), "parts", [Marks()])
    first, last = marks[1], marks[-2]  # without the first step, which warms up, and the last, which evaluates
    count = len(marks) - 3
    parts = {name: (last[1].get(name, 0.0) - first[1].get(name, 0.0)) / count * 1e3 for name in last[1]}
    whole = (last[0] - first[0]) / count * 1e3
    parts = {name: value for name, value in parts.items() if value > 0}
    return {
        "milliseconds": whole,
        "rollouts": ROLLOUTS,
        "parts": dict(sorted(parts.items(), key=lambda item: -item[1])),
        "event loop, and waiting for the device": whole - sum(parts.values()),
        "one evaluation": clock.seconds[EVALUATION] / 2 * 1e3,
        "one checkpoint": clock.seconds["checkpoint"] / max(1, len({0, steps})) * 1e3,
    }


def measure_runs(path: Path, setting: Setting, tokens: int, seeds: int, processes: int, root: Path) -> dict[str, Any]:
    """Seconds of a whole effect, and of the first job alone where `seeds` is 0."""
    plan = Plan(replace(load_experiment(path), tokens=tokens), max(seeds, 2), setting, root)
    jobs = plan.jobs if seeds else [job for job in plan.jobs if job.name == f"{ARM}-seed0"]
    processes = processes or how_many(len(jobs))
    began = time.perf_counter()
    SideBySide(plan.root, processes, setting.device.startswith("cuda")).run(jobs)
    seconds = time.perf_counter() - began
    steps = [read_rows(RunFolder(plan.root / job.name).timing) for job in jobs]
    inside = [sum(row["seconds"] for row in rows) for rows in steps]
    return {
        "runs": len(jobs),
        "processes": processes,
        "seconds": seconds,
        "seconds in steps, mean": sum(inside) / len(inside),
        "steps, mean": sum(len(rows) - 1 for rows in steps) / len(steps),
        "tokens_per_second": len(jobs) * tokens / seconds,
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=0, help=f"of each run; 0: {TOKENS:,} on a GPU, 12,000 elsewhere")
    parser.add_argument("--seeds", type=int, default=0, help="of the effect; 0: 6 on a GPU, 2 elsewhere")
    parser.add_argument("--jobs", type=int, nargs="+", default=[0], help="side by side; several are tried in turn")
    parser.add_argument("--steps", type=int, default=12, help="over which a step is broken into parts")
    parser.add_argument("--only", nargs="+", default=["start", "step", "alone", "all"])
    output_arguments(parser)
    arguments = parser.parse_args(words)
    is_gpu = torch.device(arguments.device).type == "cuda"
    tokens, seeds = arguments.tokens or (TOKENS if is_gpu else 12_000), arguments.seeds or (6 if is_gpu else 2)
    path, setting = find_experiment("poise"), Setting(device=arguments.device)
    result: dict[str, Any] = {"tokens": tokens, **circumstances(arguments.device)}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if is_gpu:  # kernels are compiled once on a machine, and kept on its disk
            result["first"] = measure_runs(path, setting, 3000, 0, 1, root / "first")
        if "start" in arguments.only:
            result["start"] = measure_start(arguments.device)
        if "step" in arguments.only:
            result["step"] = measure_step(path, arguments.device, arguments.steps)
        ratios = []
        if "alone" in arguments.only:
            result["alone"] = measure_runs(path, setting, tokens, 0, 1, root / "alone")
            ratios.append(ALONE * tokens / TOKENS / result["alone"]["seconds"])
        if "all" in arguments.only:
            tried = [measure_runs(path, setting, tokens, seeds, jobs, root / f"{jobs}") for jobs in arguments.jobs]
            result["all"], best = tried, min(tried, key=lambda each: float(each["seconds"]))
            ratios.append(ALL * tokens / TOKENS * best["runs"] / RUNS / best["seconds"])
        result["ratio"] = min(ratios, default=None)
    publish(result, as_table(result), arguments)


def as_table(result: dict[str, Any]) -> str:
    """For reading."""
    lines = [f"{result['hardware']}; {result['tokens']:,} sampled tokens per run"]
    for name, value in result.get("start", {}).items():
        lines.append(f"  start: {name:<42} {value:8.2f} s")
    if step := result.get("step"):
        lines.append(f"  a step of {step['rollouts']} rollouts: {step['milliseconds']:.1f} ms")
        rest = {name: step[name] for name in ("event loop, and waiting for the device",)}
        for name, value in {**step["parts"], **rest}.items():
            lines.append(f"    {name:<46} {value:8.1f} ms  {value / step['milliseconds']:6.1%}")
        lines.append(
            f"  one evaluation {step['one evaluation']:.0f} ms, one checkpoint {step['one checkpoint']:.0f} ms"
        )
    named = [("first run on this machine", result.get("first")), ("alone", result.get("alone"))]
    named += [("all", each) for each in result.get("all", [])]
    for name, found in named:
        if found:
            lines.append(
                f"  {name}: {found['runs']} runs, {found['processes']} at a time: {found['seconds']:.1f} s, "
                f"{found['tokens_per_second']:,.0f} tokens/s; {found['steps, mean']:.0f} steps in "
                f"{found['seconds in steps, mean']:.1f} s each run"
            )
    lines.append(f"ratio (wanted seconds / seconds): {result['ratio']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
