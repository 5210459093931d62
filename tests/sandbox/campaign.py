"""Attacks without isolation and in every sandbox: `python -m tests.sandbox.campaign [--runs 10000] [--json]`.

Each attack is run four times for each user, as root and as nobody: without isolation (its control), in both kinds of
isolation of the sandbox for Python programs, and in bubblewrap. Only those that won in the control of a user count
for that user; a win inside is a breach, counted or not. `--runs` adds so many programs, hostile and honest ones in
turn: none may be lost, and each honest one must say what it always says.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.sandbox.attacks import ATTACKS
from tests.sandbox.places import PLACES

_ROOT = Path(__file__).parents[2]
_NOBODY, _MOST_SECONDS = 65534, 3600.0
_CHECKED = "import sys; sys.exit(sys.version_info < (3, 11))"
Found = dict[str, dict[str, Any]]


@dataclass
class Campaign:
    """What was tried, by user and place."""

    found: dict[str, dict[str, Found]] = field(default_factory=dict)

    def counted(self, user: str, name: str) -> list[str]:
        """Attacks of a place that this user wins without isolation."""
        control = self.found[user]["control"]
        return [key for key in self.found[user][name] if key in control and control[key]["won"]]

    def breaches(self) -> list[str]:
        return [
            f"{user}, {name}: {key}: {'; '.join(tried['won'])}"
            for user, places in self.found.items()
            for name, found in places.items()
            if name != "control"
            for key, tried in found.items()
            if tried["won"]
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row for each user and sandbox."""
        return [
            {
                "user": user,
                "sandbox": name,
                "tried": len(found),
                "won in the control": len(self.counted(user, name)),
                "won inside": sum(bool(tried["won"]) for tried in found.values()),
            }
            for user, places in self.found.items()
            for name, found in places.items()
            if name != "control"
        ]

    def idle(self, user: str) -> list[str]:
        """Attacks that this user wins nowhere: they prove nothing."""
        return [key for key, tried in self.found[user]["control"].items() if not tried["won"]]


@contextmanager
def copy_for_all() -> Iterator[Path]:
    """The parts that a campaign needs, where every user may read them."""
    with tempfile.TemporaryDirectory(prefix="strop-campaign-") as folder:
        Path(folder).chmod(0o755)
        for name in ("strop", "tests/__init__.py", "tests/sandbox"):
            source, target = _ROOT / name, Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            skipped = shutil.ignore_patterns("__pycache__", "*.json", "*.safetensors")
            shutil.copytree(source, target, ignore=skipped) if source.is_dir() else shutil.copy(source, target)
        yield Path(folder)


def users() -> list[str]:
    """Root becomes somebody else; nobody else does."""
    return ["root", "nobody"] if os.geteuid() == 0 else ["nobody"]


def _as(user: str) -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if user == "nobody" and os.geteuid() == 0 else {}


def interpreter(user: str) -> str:
    """A Python that this user may start; nothing, if there is none."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        try:
            if (
                python
                and subprocess.run([python, "-c", _CHECKED], cwd="/", env={}, check=False, **_as(user)).returncode == 0
            ):
                return python
        except OSError:
            continue
    return ""


def asked(folder: Path, user: str, module: str, *arguments: str) -> Any:
    """What a module of the campaign, copied to a folder, answers when this user starts it."""
    known = {"PATH": "/usr/bin:/bin", "HOME": "/", "STROP_CANARY": os.urandom(8).hex(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [interpreter(user), "-m", f"tests.sandbox.{module}", *arguments],
        cwd=folder,
        env=known,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=_MOST_SECONDS,
        check=True,
        **_as(user),
    )
    return json.loads(done.stdout)


def campaign(every: int = 1, name: str = "", is_fast: bool = False, who: Sequence[str] = ()) -> Campaign:
    """Every attack, one of so many, or those in whose name a pattern is found; the quick ones hold nothing for long."""
    done, part = Campaign(), ["--every", str(every), "--name", name, *(["--quick"] if is_fast else [])]
    with copy_for_all() as folder:
        for user in who or users():
            done.found[user] = {where: asked(folder, user, "escapes", where, *part) for where in sorted(PLACES)}
    return done


def many_runs(programs: int, seed: int) -> dict[str, Any]:
    """So many runs, an equal share for each user."""
    share = [str(programs // len(users())), "--seed", str(seed)]
    with copy_for_all() as folder:
        return {user: asked(folder, user, "runs", *share) for user in users() if programs}


def _table(done: Campaign, runs: dict[str, Any], seconds: float) -> str:
    rows = done.rows()
    lines = [f"| {' | '.join(rows[0])} |", f"|{'---|' * len(rows[0])}"]
    lines += [f"| {' | '.join(str(value) for value in row.values())} |" for row in rows]
    lines += [f"{user}: {len(done.idle(user))} attacks win nowhere" for user in done.found]
    lines += [f"runs as {user}: {told}" for user, told in runs.items()]
    return "\n".join([*lines, f"{len(ATTACKS)} attacks, {seconds:.0f} s", *done.breaches()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="one attack of so many")
    parser.add_argument("--name", default="", help="only attacks in whose name this pattern is found")
    parser.add_argument("--quick", action="store_true", help="none that takes time or room")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args()
    begun = time.monotonic()
    done = campaign(arguments.every, arguments.name, arguments.quick)
    runs = many_runs(arguments.runs, arguments.seed)
    seconds = time.monotonic() - begun
    whole = {"rows": done.rows(), "breaches": done.breaches(), "idle": {user: done.idle(user) for user in done.found}}
    print(json.dumps({**whole, "runs": runs, "seconds": seconds}) if arguments.json else _table(done, runs, seconds))
    sys.exit(bool(done.breaches() or any(told["wrong"] for told in runs.values())))


if __name__ == "__main__":
    main()
