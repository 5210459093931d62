"""strop's side of a comparison: GRPO through the whole pipeline, ledger and journal included."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from turns import Finished, Stopwatch
from workload import GROUP_SIZE, GROUPS_PER_STEP, LEARNING_RATE, WORKLOADS, OddLetters, Workload

from strop.evaluation import Evaluation
from strop.launch import launch
from strop.recipes.grpo import grpo
from strop.recipes.setting import Setting
from strop.roles import Metrics
from strop.run import Run

_NEVER = 1 << 30


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
        world=str(folder / "tasks.jsonl"),
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
        watch.answer({"lengths": [tokens for (tokens,) in ledger.execute("SELECT tokens FROM attempts")]})


if __name__ == "__main__":
    main(Path(sys.argv[1]), WORKLOADS[sys.argv[2]])
