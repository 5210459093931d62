"""End-to-end RL on one device: strop beside TRL's GRPOTrainer, and asynchronous beside synchronous.

    python benchmarks/end_to_end.py [--compare trl async] [--model smollm2] [--groups 64] [--group-size 8]
        [--max-tokens 256] [--steps 8] [--lag 4] [--json] [--save NAME]

`trl`: the same model, tasks (reasoning-gym), group size, lengths and number of optimizer steps; TRL generates with
transformers in bfloat16 and trains in micro-batches of `--trl-batch`. The learning rate is too small to change how long
completions get. `async`: strop against itself, lag 0 against `--lag`, on a model of the same shape whose completions
outlive n
tokens with probability `--shortest` / n, cut at `--longest`. Every side runs in a process of its own, and the first
`--warm` steps are not counted. `ratio` is strop's samples/s over TRL's, `ratio_async` asynchronous over synchronous.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from machine import circumstances, output_arguments, publish
from shapes import heavy_tailed

from strop.environments.external.reasoning_gym_small import Drill
from strop.evaluation import Evaluation
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.launch.running.launch import launch
from strop.models.loading.model_names import model_folder
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics, Task

HERE = Path(__file__).parent
NEED = {"trl": 5.0, "async": 1.5}
LEARNING_RATE = 1e-9
KINDS = ("chain_sum", "products", "gcd", "letter_counting", "spell_backward", "leg_counting")
_NEVER = 1 << 30


def tasks(count: int) -> list[Task]:
    """The same for both sides."""
    return [Drill(KINDS[index % len(KINDS)], 2).task(index // len(KINDS)) for index in range(count)]


@dataclass
class Stopwatch:
    """A watcher that notes when steps end, and how many tokens were trained by then."""

    marks: list[tuple[float, float]] = field(default_factory=list)
    timings: list[Metrics] = field(default_factory=list)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.marks.append((time.perf_counter(), metrics.get("tokens_trained", 0.0)))
        self.timings.append(timing)


def recipe(model: Path, arguments: argparse.Namespace, lag: int, max_tokens: int) -> Run:
    """GRPO without a reference, clipped against the policy that sampled, which is right with and without lag."""
    is_gpu = torch.device(arguments.device).type == "cuda"
    setting = Setting(
        env="+".join(f"drill/{kind}:2" for kind in KINDS) if arguments.model != "tiny" else "arithmetic:2",
        model=str(model),
        steps=arguments.warm + arguments.steps,
        groups_per_step=arguments.groups,
        group_size=arguments.group_size,
        learning_rate=LEARNING_RATE,
        max_tokens=max_tokens,
        lag=lag,
        checkpoint_every=_NEVER,
        device=arguments.device,
        threads=arguments.threads,
    )
    rows = arguments.groups * arguments.group_size * min(lag + 1, 2)  # without lag no more are ever under way
    trainer = TorchTrainer(
        learning_rate=LEARNING_RATE,
        device=arguments.device,
        dtype="bfloat16" if is_gpu else "float32",
        max_tokens=arguments.micro_tokens,
    )
    return replace(
        grpo(setting, kl=0.0),
        evaluation=Evaluation(every=0, tasks=1),
        context=max_tokens + 512,
        rescore_every=0,
        trainer=trainer,
        engine=PagedEngine(rows=rows, device=arguments.device, keep_cache=lag > 0)
        if is_gpu
        else TorchEngine(rows=rows, keep_cache=lag > 0),
    )


def strop_side(model: Path, arguments: argparse.Namespace, lag: int, max_tokens: int) -> dict[str, Any]:
    """One run and its figures."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as root:
        launch(recipe(model, arguments, lag, max_tokens), Path(root), "run", [watch])
        lengths = _lengths(Path(root) / "run" / "ledger.db")
    ends = watch.marks[arguments.warm :]
    found = figures([end for end, _ in ends], ends[-1][1] - ends[0][1], lengths, arguments)
    counted = watch.timings[arguments.warm + 1 :]
    names = sorted({name for timing in counted for name in timing})
    return found | {"timing": {name: statistics.fmean(each.get(name, 0.0) for each in counted) for name in names}}


def figures(ends: list[float], tokens: float, lengths: list[int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Of steps that ended at these times, the first of them not counted."""
    seconds, steps = ends[-1] - ends[0], len(ends) - 1
    return {
        "samples_per_second": steps * arguments.groups * arguments.group_size / seconds,
        "tokens_per_second": tokens / seconds,
        "seconds_per_step": [round(b - a, 3) for a, b in pairwise(ends)],
        "length": {
            "mean": statistics.fmean(lengths),
            "median": statistics.median(lengths),
            "longest": max(lengths),
        },
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None,
    }


def _lengths(path: Path) -> list[int]:
    ledger = Ledger(path, read_only=True)
    found = [
        rollout.num_tokens
        for step in ledger.trained_steps()
        for group in ledger.trained_groups(step)
        for rollout in group.rollouts
    ]
    ledger.close()
    return found


def one(side: str, model: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of a side, in this process."""
    if side == "trl":
        from end_to_end_trl import trl_side

        return trl_side(model, arguments)
    if side == "strop":
        return strop_side(model, arguments, 0, arguments.max_tokens)
    return strop_side(model, arguments, arguments.lag if side == "async" else 0, arguments.longest)


def apart(side: str, model: Path, arguments: argparse.Namespace, words: list[str]) -> dict[str, Any]:
    """The figures of a side from a process of its own, so that none inherits another's memory."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        target, log = Path(folder) / "figures.json", Path(folder) / "log"
        command = [sys.executable, __file__, *words, "--one", side, "--folder", str(model), "--target", str(target)]
        with log.open("w") as output:
            done = subprocess.run(command, stdout=output, stderr=output, env=os.environ | {"HF_HUB_OFFLINE": "1"})
        if done.returncode:
            raise SystemExit(f"{side} ended with {done.returncode}:\n{log.read_text()[-4000:]}")
        found: dict[str, Any] = json.loads(target.read_text())
    told = {name: round(found[name], 1) for name in ("samples_per_second", "tokens_per_second")}
    print(f"{side} {told} in {time.perf_counter() - began:.0f} s altogether", file=sys.stderr)
    return found


def compare(kind: str, arguments: argparse.Namespace, words: list[str]) -> dict[str, Any]:
    """Two sides one after the other, and by how much the first is faster."""
    sides = ("strop", "trl") if kind == "trl" else ("async", "sync")
    with tempfile.TemporaryDirectory() as scratch:
        model = (
            heavy_tailed(arguments.model, Path(scratch) / "model", arguments.shortest, arguments.longest)
            if kind == "async" or arguments.model == "tiny"
            else model_folder(arguments.model)
        )
        found = {side: apart(side, model, arguments, words) for side in sides}
    first, second = (found[side] for side in sides)
    measure = "samples_per_second" if kind == "trl" else "tokens_per_second"
    ratio = first[measure] / second[measure]
    return {"ratio": ratio, "is_reached": ratio >= NEED[kind], "sides": found}


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = [f"{'':8}{'samples/s':>11}{'tokens/s':>11}{'s/step':>8}{'mean':>8}{'median':>8}{'longest':>9}"]
    for kind, result in results.items():
        for side, found in result["sides"].items():
            length = found["length"]
            lines.append(
                f"{side:8}{found['samples_per_second']:>11,.1f}{found['tokens_per_second']:>11,.0f}"
                f"{statistics.median(found['seconds_per_step']):>8.2f}{length['mean']:>8.1f}"
                f"{length['median']:>8.0f}{length['longest']:>9}"
            )
        lines.append(f"  ratio {result['ratio']:.2f} (at least {NEED[kind]} is wanted)")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    arguments = _arguments(words)
    if arguments.one:
        arguments.target.write_text(json.dumps(one(arguments.one, arguments.folder, arguments)))
        return 0
    results = {kind: compare(kind, arguments, words) for kind in arguments.compare}
    result = {
        "benchmark": "end_to_end",
        "ratio": results[arguments.compare[0]]["ratio"],
        **{f"ratio_{kind}": found["ratio"] for kind, found in results.items()},
        "comparisons": results,
        "is_reached": all(found["is_reached"] for found in results.values()),
        "setting": {name: value for name, value in vars(arguments).items() if isinstance(value, int | str)},
        **circumstances(arguments.device),
    }
    publish(result, table(results), arguments)
    return 0


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", nargs="+", choices=["trl", "async"], default=["trl", "async"])
    parser.add_argument("--model", default="smollm2", help="smollm2, a folder, or tiny")
    parser.add_argument("--groups", type=int, default=64, help="of one step")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=256, help="of a completion, against TRL")
    parser.add_argument("--shortest", type=int, default=64, help="tokens that every heavy-tailed completion has")
    parser.add_argument("--longest", type=int, default=2048)
    parser.add_argument("--lag", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm", type=int, default=3, help="steps before, which are not counted")
    parser.add_argument("--micro-tokens", type=int, default=65_536, help="of strop's micro-batches")
    parser.add_argument("--trl-batch", type=int, default=128, help="rollouts of TRL's micro-batches")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=Path, help=argparse.SUPPRESS)
    output_arguments(parser)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
