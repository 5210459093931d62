"""strop's side of a comparison: GRPO through the whole pipeline, ledger and journal included.

With numbers of steps and threads as further arguments it does not take turns: asynchronous, in two processes, it says
its samples/s.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import strop  # noqa: F401 (before torch is imported: it says how threads wait)

# isort: split
from turns import Finished, Stopwatch
from workload import GROUP_SIZE, GROUPS_PER_STEP, LEARNING_RATE, WORKLOADS, OddLetters, Workload

from strop.control.admission.bounded_lag import BoundedLag
from strop.evaluation import Evaluation
from strop.launch.running.launch import launch
from strop.placement.place import place
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.run import Run
from strop.types import Metrics

_NEVER = 1 << 30
_LAG = 4
_WARM = _LAG + 2  # steps that are not counted: until then the pipeline fills


@dataclass(frozen=True)
class Timed:
    """A watcher that holds the run up between two steps."""

    watch: Stopwatch

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        if step == 0:
            self.watch.wait()
        else:
            self.watch.stepped()


def recipe(folder: Path, workload: Workload) -> Run:
    """GRPO without a reference, as on the other side."""
    setting = Setting(
        env=str(folder / "tasks.jsonl"),
        model=str(folder / "model"),
        steps=_NEVER,
        groups_per_step=GROUPS_PER_STEP,
        group_size=GROUP_SIZE,
        learning_rate=LEARNING_RATE,
        max_tokens=workload.max_tokens,
        checkpoint_every=_NEVER,
    )
    return replace(grpo(setting, kl=0.0), rewards=(OddLetters(),), evaluation=Evaluation(every=0, tasks=1))


def main(folder: Path, workload: Workload) -> None:
    watch = Stopwatch.on_stdout()
    with suppress(Finished):
        launch(recipe(folder, workload), folder / "runs", "strop", [Timed(watch)])
    with closing(sqlite3.connect(folder / "runs" / "strop" / "ledger.db")) as ledger:
        watch.answer({"lengths": [tokens for (tokens,) in ledger.execute("SELECT tokens FROM rollouts")]})


@dataclass(frozen=True)
class Clock:
    """A watcher that notes when each step was done."""

    times: list[float] = field(default_factory=list)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.times.append(time.perf_counter())


def alone(folder: Path, workload: Workload, steps: int, threads: int) -> None:
    """Lag 4, `threads` for the trainer and one for the engine; nothing holds it up."""
    run = place(replace(recipe(folder, workload), steps=steps, admission=BoundedLag(_LAG), threads=threads), "process")
    clock = Clock()
    launch(run, folder / "runs", "alone", [clock])
    seconds = clock.times[-2] - clock.times[_WARM]  # the last step evaluates
    print(json.dumps({"samples_per_second": (steps - 1 - _WARM) * GROUPS_PER_STEP * GROUP_SIZE / seconds}))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        alone(Path(sys.argv[1]), WORKLOADS[sys.argv[2]], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(Path(sys.argv[1]), WORKLOADS[sys.argv[2]])
