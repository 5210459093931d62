"""Asynchronous against synchronous training on the same two cores, with replies of very different lengths.

    python benchmarks/async_vs_sync.py [--json] [--quick] [--seeds 3] [--steps 30]

The world wants numbers counted down, `57>04`; how far is Pareto (see counting.py), so that the longest reply has 20
times the median's tokens. A pocket model that half knows it is trained further by GRPO, with the same seeds, steps and
attempts per step in each setting: synchronous with one thread, with two, and in two processes; asynchronous with lag 4
in two processes of one thread each. Settings take turns, each run in a process of its own. Counted are the steps
between the second and the last, so no start-up and no evaluation. The `ratio` is samples/s of the asynchronous setting
over the best synchronous one.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from counting import MOST_TOKENS, Counting

from strop.control.samplers.uniform import Uniform
from strop.evaluation import Evaluation
from strop.generate.engines.torch import TorchEngine
from strop.launch import launch
from strop.ledger import Ledger
from strop.placement.place import place
from strop.recipes.pocket import pocket
from strop.recipes.setting import Setting
from strop.roles import Metrics
from strop.run import Run

GROUPS_PER_STEP, GROUP_SIZE = 16, 8
LAG, CORES, NEED = 4, 2, 1.5
_WARM = 2  # steps that are not counted
_NEVER = 1 << 30


@dataclass(frozen=True)
class Arm:
    """A way to use two cores; `threads` are those of the process that trains."""

    lag: int
    where: str
    threads: int


ARMS = {
    "sync, 1 thread": Arm(0, "inline", 1),
    "sync, 2 threads": Arm(0, "inline", 2),
    "sync, 2 processes": Arm(0, "process", 2),
    "async, 2 processes": Arm(LAG, "process", 1),
}
ASYNC = "async, 2 processes"


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
    """GRPO without a reference: clipped against the policy that sampled, which is right with and without lag."""
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
    worlds = (Counting(seed=seed),)
    run = replace(
        pocket(setting),
        worlds=worlds,
        sampler=Uniform(worlds),
        engine=TorchEngine(keep_cache=arm.lag > 0),
        evaluation=Evaluation(every=0, tasks=tasks),
        rescore_every=0,
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
        ledger = Ledger(Path(root) / "run" / "ledger.db", read_only=True)
        groups = [(step, group) for step in ledger.trained_steps() for group in ledger.draw(step)]
        ledger.close()
    first, last = watch.marks[_WARM], watch.marks[-2]
    wall, count = last.wall - first.wall, last.step - first.step
    turns = [(step, turn) for step, group in groups for each in group.trajectories for turn in each.turns]
    lags = Counter(int(lag) for step, turn in turns for lag in step - 1 - turn.versions)
    return {
        "seconds_per_step": wall / count,
        "samples_per_second": count * GROUPS_PER_STEP * GROUP_SIZE / wall,
        "tokens_per_step": (last.tokens - first.tokens) / count,
        "tokens_per_second": (last.tokens - first.tokens) / wall,
        "trainer_core_seconds_per_step": (last.trainer - first.trainer) / count,
        "engine_core_seconds_per_step": (last.engine - first.engine) / count,
        "trainer_idle": 1 - (last.trainer - first.trainer) / wall,
        "engine_idle": 1 - (last.engine - first.engine) / wall if arm.where == "process" else None,
        "cores_idle": 1 - (last.trainer - first.trainer + last.engine - first.engine) / wall / CORES,
        "heldout_before": summary["heldout_before"],
        "heldout_after": summary["heldout_after"],
        "tokens_trained": summary["tokens_trained"],
        "lags": dict(sorted(lags.items())),
        "lengths": sorted(len(turn.tokens) for _, turn in turns),
    }
