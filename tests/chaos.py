"""The chaos campaign: seeded SIGKILLs of controller, engines, trainer ranks and reward workers while runs go on.

    python -m tests.chaos --kills 100 --place process     (what `make chaos` runs, then 20 over Ray)

Every run must end after however many resumes; its ledger must hold its promises: nothing lost, nothing trained twice,
nothing trained beyond the lag; and no process may be left behind.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from strop.disk.folder import RunFolder, read_rows
from strop.disk.ledger import Ledger
from strop.placement.place import place
from strop.recipes import build, recipe_named
from strop.run import Run
from strop.start.launch import launch, relaunch
from tests.models import save_pocket_like
from tests.parts import EvenLength, LongerIsBetter

LAG = 2
STEPS = 30
# how the command line of each kind of process begins, or the module that it runs
KINDS = {
    "engine": "strop.placement.host",
    "reward": "strop.filter.worker",
    "actor": "ray::Hosted",
    "rank": "strop.training.machine.rank",
}
_MARK = "STROP_CHAOS"  # in the environment of all that a campaign starts, however indirectly
_LONGEST = 180.0  # seconds without an end or a kill before a run counts as hung


def make_run(model: Path, where: str, ranks: int) -> Run:
    values = {
        "model": str(model), "steps": STEPS, "groups_per_step": 3, "group_size": 4, "max_tokens": 12, "lag": LAG,
        "heldout_tasks": 4, "heldout_every": 0, "checkpoint_every": 2, "ranks": ranks,
    }  # fmt: skip
    run = replace(build(recipe_named("grpo"), values), rewards=(LongerIsBetter(), EvenLength()))
    return place(run, where, 1)


@dataclass
class Campaign:
    """Counts what was killed and what came of it."""

    model: Path
    root: Path
    where: str
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    resumes: int = 0

    def one_run(self, most: int) -> None:
        """Kill up to `most` times while one run is made, then let it end and look at what it left."""
        name, budget = f"run-{self.runs}", most
        ranks = 2 if self.where == "process" and self.runs % 3 == 2 else 1
        self.runs += 1
        controller = self._start(name, ranks)
        while budget and not self._moves_or_ends(controller, name):
            kind, victim, command = self._victim(controller.pid)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            with (self.root / f"{name}.log").open("a") as log:
                print(f"killed: {kind} {victim} {command[:200]}", file=log)
            budget -= 1
            self.kills[kind] += 1
            if kind in ("controller", "rank"):  # without one of its ranks a trainer ends, and says so
                assert self._ends_within(controller, _LONGEST), f"{name} goes on without its {kind}"
            if kind == "controller" or (kind == "rank" and controller.returncode):
                controller = self._start(name, ranks)
                self.resumes += 1
        if not self._ends_within(controller, _LONGEST):
            controller.kill()
            raise AssertionError(f"{name} hung: nothing for {_LONGEST:.0f} s after {dict(self.kills)}")
        assert controller.returncode == 0, (self.root / f"{name}.log").read_text()[-3000:]
        self._check(self.root / name)

    def _moves_or_ends(self, controller: subprocess.Popen[bytes], name: str) -> bool:
        """Wait until another step is made, or sometimes not, and then a moment; answers whether the run is over."""
        metrics, until = self.root / name / "metrics.jsonl", time.monotonic() + 30.0
        before = metrics.stat().st_size if metrics.is_file() else 0
        is_patient = self.random.random() < 0.8  # else it may be killed while it recovers, or before it has begun
        while is_patient and controller.poll() is None and time.monotonic() < until:
            if metrics.is_file() and metrics.stat().st_size > before:
                break
            time.sleep(0.02)
        return self._ends_within(controller, self.random.uniform(0.0, 1.0 if is_patient else 6.0))

    def _start(self, name: str, ranks: int) -> subprocess.Popen[bytes]:
        child = ("--child", str(self.root / name), str(self.model), self.where, str(ranks))
        with (self.root / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                (sys.executable, "-m", "tests.chaos", *child),
                stdout=log,
                stderr=log,
                env={**os.environ, _MARK: str(self.root)},
            )

    @staticmethod
    def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _victim(self, controller: int) -> tuple[str, int, str]:
        """A kind at random, so that the few controllers are hit as often as many workers."""
        found: dict[str, list[tuple[int, str]]] = {"controller": [(controller, "")]}
        for pid, command in descendants(controller):
            for kind, part in KINDS.items():
                if command.startswith(part) or f"processes.entry {part}" in command:
                    found.setdefault(kind, []).append((pid, command))
        kind = self.random.choice(sorted(found))
        return kind, *self.random.choice(sorted(found[kind]))

    def _check(self, path: Path) -> None:
        ledger = Ledger(path / "ledger.db", read_only=True)
        assert ledger.violations() == [], ledger.violations()
        assert ledger.trained_more_than_once() == 0
        steps = [row["step"] for row in read_rows(RunFolder(path).metrics)]
        assert steps == list(range(STEPS + 1)), steps
        drawn = ledger._rows("SELECT COUNT(DISTINCT number) FROM trainings GROUP BY step")
        assert drawn == [(3,)] * STEPS, drawn
        lost = "SELECT COUNT(*) FROM attempts a JOIN groups g ON g.number = a.number WHERE g.fate = 'trained' AND "
        assert ledger._rows(f"{lost} a.fate NOT IN ('trained', 'failed')") == [(0,)]
        late = "SELECT MAX(t.step - 1 - g.version) FROM trainings t JOIN attempts a ON a.id = t.attempt JOIN groups g"
        assert ledger._rows(f"{late} ON g.number = a.number")[0][0] <= LAG
        ledger.close()


def descendants(parent: int) -> list[tuple[int, str]]:
    """Processes below one, with their command lines."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below = {parent}
    while more := {pid for pid, above in parents.items() if above in below} - below:
        below |= more
    found = []
    for pid in sorted(below - {parent}):
        try:
            found.append((pid, (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


def left_behind(root: Path) -> list[str]:
    """Processes that the campaign started, however indirectly, and that are still there."""
    mark, found = f"{_MARK}={root}".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def child(path: Path, model: Path, where: str, ranks: int) -> None:
    """What a controller does: go on with the run if it exists, else start it."""
    recipe = path / "recipe.py"
    if recipe.is_file() and "launch(run)" in recipe.read_text():
        relaunch(path)
    else:
        if path.exists():
            path.rename(path.with_name(f"{path.name}.unborn-{time.monotonic_ns()}"))
        launch(make_run(model, where, ranks), path.parent, path.name)


def campaign(kills: int, where: str, seed: int, root: Path, per_run: int = 5) -> Campaign:
    """Runs, each killed a few times, until that many kills are done."""
    work = Campaign(save_pocket_like(root / "model"), root, where, random.Random(seed))
    while (left := kills - sum(work.kills.values())) > 0:
        work.one_run(min(left, per_run))
        print(f"{sum(work.kills.values())}/{kills} kills, {work.runs} runs ended whole: {dict(work.kills)}", flush=True)
    deadline = time.monotonic() + 60.0  # agents of a Ray whose controller was killed take their time
    while (left_over := left_behind(root)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not left_over, left_over
    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--place", default="process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=4, metavar=("PATH", "MODEL", "PLACE", "RANKS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, model, where, ranks = arguments.child
        return child(Path(path), Path(model), where, int(ranks))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        done = campaign(arguments.kills, arguments.place, arguments.seed, Path(root))
    print(
        f"{sum(done.kills.values())} kills {dict(done.kills)} over {done.runs} runs, {done.resumes} resumes, "
        f"{(time.monotonic() - began) / 60:.0f} minutes: every run ended whole, nothing lost, nothing trained twice"
    )


if __name__ == "__main__":
    main()
