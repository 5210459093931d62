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

from strop.folder import RunFolder, read_rows
from strop.launch import launch, relaunch
from strop.ledger import Ledger
from strop.placement.place import place
from strop.recipes import build, recipe_named
from strop.run import Run
from tests.models import save_pocket_like
from tests.parts import EvenLength, LongerIsBetter

LAG = 2
STEPS = 12
# a part of the command line of each kind of process
KINDS = {"engine": "strop.placement.host", "reward": "strop.filter.worker", "actor": "ray::", "rank": "trainers.rank"}
_LONGEST = 180.0  # seconds without an end or a kill before a run counts as hung


def make_run(model: Path, where: str) -> Run:
    values = {
        "model": str(model), "steps": STEPS, "groups_per_step": 3, "group_size": 4, "max_tokens": 12, "lag": LAG,
        "heldout_tasks": 4, "heldout_every": 0, "checkpoint_every": 2,
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

    def one_run(self, most: int) -> None:
        """Kill up to `most` times while one run is made, then let it end and look at what it left."""
        name, budget = f"run-{self.runs}", most
        self.runs += 1
        controller = self._start(name)
        while budget and not self._ends_within(controller, self.random.uniform(0.5, 6.0)):
            kind, victim = self._victim(controller.pid)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            budget -= 1
            self.kills[kind] += 1
            if kind == "controller":
                controller.wait()
                controller = self._start(name)
        if not self._ends_within(controller, _LONGEST):
            controller.kill()
            raise AssertionError(f"{name} hung: nothing for {_LONGEST:.0f} s after {dict(self.kills)}")
        assert controller.returncode == 0, (self.root / f"{name}.log").read_text()[-3000:]
        self._check(self.root / name)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        with (self.root / f"{name}.log").open("ab") as log:
            command = [
                sys.executable,
                "-m",
                "tests.chaos",
                "--child",
                str(self.root / name),
                str(self.model),
                self.where,
            ]
            return subprocess.Popen(command, stdout=log, stderr=log)

    @staticmethod
    def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _victim(self, controller: int) -> tuple[str, int]:
        """A kind at random, so that the few controllers are hit as often as many workers."""
        found: dict[str, list[int]] = {"controller": [controller]}
        for pid, command in descendants(controller):
            for kind, part in KINDS.items():
                if part in command:
                    found.setdefault(kind, []).append(pid)
        kind = self.random.choice(sorted(found))
        return kind, self.random.choice(sorted(found[kind]))

    def _check(self, path: Path) -> None:
        ledger = Ledger(path / "ledger.db", read_only=True)
        assert ledger.violations() == [], ledger.violations()
        assert ledger.trained_more_than_once() == 0
        steps = [row["step"] for row in read_rows(RunFolder(path).metrics)]
        assert steps == list(range(STEPS + 1)), steps
        assert ledger.counts()["trained"] == STEPS * 3 * 4 - ledger.counts().get("failed", 0)
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
    """Processes that still name the campaign's folder or hold its runs."""
    every = descendants(1) + descendants(os.getpid())
    return [command for _, command in every if str(root) in command and "tests.chaos --kills" not in command]


def child(path: Path, model: Path, where: str) -> None:
    """What a controller does: go on with the run if it exists, else start it."""
    recipe = path / "recipe.py"
    if recipe.is_file() and "launch(run)" in recipe.read_text():
        relaunch(path)
    else:
        if path.exists():
            path.rename(path.with_name(f"{path.name}.unborn-{time.monotonic_ns()}"))
        launch(make_run(model, where), path.parent, path.name)


def campaign(kills: int, where: str, seed: int, root: Path, per_run: int = 5) -> Campaign:
    """Runs, each killed a few times, until that many kills are done."""
    work = Campaign(save_pocket_like(root / "model"), root, where, random.Random(seed))
    while (left := kills - sum(work.kills.values())) > 0:
        work.one_run(min(left, per_run))
        print(f"{sum(work.kills.values())}/{kills} kills, {work.runs} runs ended whole: {dict(work.kills)}", flush=True)
    time.sleep(1.0)
    assert not left_behind(root), left_behind(root)
    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--place", default="process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=3, metavar=("PATH", "MODEL", "PLACE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(Path(arguments.child[0]), Path(arguments.child[1]), arguments.child[2])
    with tempfile.TemporaryDirectory() as root:
        done = campaign(arguments.kills, arguments.place, arguments.seed, Path(root))
    print(f"{sum(done.kills.values())} kills {dict(done.kills)} over {done.runs} runs: every one ended whole")


if __name__ == "__main__":
    main()
