"""The chaos campaign: seeded SIGKILLs of controller, engines, trainer ranks and reward workers while runs go on.

    python -m tests.chaos --kills 100                     (what `make chaos` runs: of all modes together)
    python -m tests.chaos --kills 20 --mode ray --mode process --json kills.json

Every run must end after however many resumes, with the bits of one that nobody killed where its mode promises that;
its ledger must hold its promises: nothing lost, nothing trained twice, nothing trained beyond the lag; and no process,
mount, shared memory, file, key or socket may be left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strop.launch.running.launch import launch, relaunch
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from tests.chaos_leftovers import MARK, left_behind, things
from tests.chaos_modes import LAG, MODES, Mode, can_run, traces
from tests.tiny_models import save_pocket_like

# how the command line of each kind of process begins, or the module that it runs
KINDS = {
    "engine": "strop.placement.engine_host",
    "reward": "strop.filter.worker",
    "actor": "ray::Hosted",
    "rank": "strop.training.machine.rank",
}
_LONGEST = 180.0  # seconds without an end or a kill before a run counts as hung


@dataclass
class Campaign:
    """Counts what was killed and what came of it."""

    model: Path
    root: Path
    name: str  # of the mode
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    resumes: int = 0
    whole: object = None  # what a run leaves that nobody killed
    left: list[str] = field(default_factory=list)  # mounts, files, keys and more that were not there before

    def plain(self) -> dict[str, Any]:
        counts = {"kills": sum(self.kills.values()), "runs": self.runs, "resumes": self.resumes}
        return {**counts, "promise": self.mode.promise, "killed": dict(self.kills), "left": self.left}

    @property
    def mode(self) -> Mode:
        return MODES[self.name]

    def begin(self) -> None:
        """Make the run that the others are compared with."""
        if self.mode.promise != "ledger":
            controller = self._start("whole")
            assert self._ends_within(controller, 2 * _LONGEST), "the run that nobody kills hangs"
            assert controller.returncode == 0, (self.root / "whole.log").read_text()[-3000:]
            self.whole = traces(self.root / "whole", self.mode.promise)

    def one_run(self, most: int) -> None:
        """Kill up to `most` times while one run is made, then let it end and look at what it left."""
        name, budget = f"run-{self.runs}", most
        self.runs += 1
        controller = self._start(name)
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
                controller = self._start(name)
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

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        child = ("--child", str(self.root / name), str(self.model), self.name)
        with (self.root / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                (sys.executable, "-m", "tests.chaos", *child),
                stdout=log,
                stderr=log,
                env={**os.environ, MARK: str(self.root)},
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
        for pid, command in descendants(controller) if self.mode.kills_all else ():
            for kind, part in KINDS.items():
                if command.startswith(part) or f"workers.entry {part}" in command:
                    found.setdefault(kind, []).append((pid, command))
        kind = self.random.choice(sorted(found))
        return kind, *self.random.choice(sorted(found[kind]))

    def _check(self, path: Path) -> None:
        ledger = Ledger(path / "ledger.db", read_only=True)
        assert ledger.violations() == [], ledger.violations()
        assert self.mode.trains_again or ledger.trained_more_than_once() == 0
        steps = [row["step"] for row in read_rows(RunFolder(path).metrics)]
        assert steps == list(range(self.mode.steps + 1)), steps
        if self.mode.promise == "ledger":  # where others keep to the bits of a whole run
            lost = "SELECT COUNT(*) FROM rollouts a JOIN groups g ON g.number = a.number WHERE g.fate = 'trained' AND "
            assert ledger._rows(f"{lost} a.fate NOT IN ('trained', 'failed')") == [(0,)]
            late = "SELECT MAX(t.step - 1 - g.version) FROM trainings t JOIN rollouts a ON a.id = t.rollout"
            assert ledger._rows(f"{late} JOIN groups g ON g.number = a.number")[0][0] <= LAG
        ledger.close()
        left = traces(path, self.mode.promise)
        assert left == (self.whole if self.mode.promise != "ledger" else True), (
            f"{path}: not as if nobody had killed it"
        )


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


def child(path: Path, model: Path, name: str) -> None:
    """What a controller does: go on with the run if it exists, else start it."""
    recipe = path / "recipe.py"
    if recipe.is_file() and "launch(run)" in recipe.read_text():
        relaunch(path)
    else:
        if path.exists():
            path.rename(path.with_name(f"{path.name}.unborn-{time.monotonic_ns()}"))
        launch(MODES[name].make(model), path.parent, path.name)


def campaign(kills: int, name: str, seed: int, root: Path, per_run: int = 5) -> Campaign:
    """Runs of one mode, each killed a few times, until that many kills are done."""
    before = things()
    work = Campaign(save_pocket_like(root / "model"), root, name, random.Random(seed))
    work.begin()
    while (left := kills - sum(work.kills.values())) > 0:
        work.one_run(min(left, per_run))
        print(
            f"{name}: {sum(work.kills.values())}/{kills} kills, {work.runs} runs ended whole: {dict(work.kills)}",
            flush=True,
        )
    deadline = time.monotonic() + 60.0  # agents of a Ray whose controller was killed take their time
    while (left_over := left_behind(root)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not left_over, left_over
    work.left = sorted(things() - before)
    return work


def table(done: dict[str, dict[str, Any]]) -> str:
    """A row per mode."""
    rows = [f"{'mode':12} {'kills':>5} {'runs':>5} {'resumes':>7}  promise kept  killed; left behind"]
    for name, each in done.items():
        killed = ", ".join(f"{count} {kind}" for kind, count in each["killed"].items())
        counts = f"{name:12} {each['kills']:5} {each['runs']:5} {each['resumes']:7}"
        rows.append(f"{counts}  {each['promise']:12}  {killed}; {', '.join(each['left']) or 'nothing'}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="of all modes together")
    parser.add_argument("--mode", action="append", choices=list(MODES), help="may be said again; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the table there too")
    parser.add_argument("--child", nargs=3, metavar=("PATH", "MODEL", "MODE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, model, name = arguments.child
        return child(Path(path), Path(model), name)
    names = [name for name in arguments.mode or MODES if can_run(name)]
    missing = sorted({*(arguments.mode or MODES)} - {*names})
    done: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(names):
        share = arguments.kills // len(names) + (place < arguments.kills % len(names))
        with tempfile.TemporaryDirectory(prefix="chaos-") as root:
            os.environ["XDG_STATE_HOME"] = f"{root}/state"  # the key of these runs is not left in anybody's home
            work = campaign(share, name, arguments.seed, Path(root))
        done[name] = work.plain()
        if arguments.json:
            arguments.json.write_text(json.dumps(done, indent=1) + "\n")
    print(table(done))
    print(f"not installed, not killed: {', '.join(missing)}" if missing else "every run ended whole")


if __name__ == "__main__":
    main()
