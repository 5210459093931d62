"""Programs and commands in a sandbox, asked for by this user or, where this is root, by an ordinary one.

`python -m tests.sandbox.users` reads one question as JSON and prints what came of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from strop.sandbox.bubblewrap import Bubble
from strop.sandbox.execution import Allowance, Ending, Ran
from strop.sandbox.kernel_isolation.confine import KernelIsolation
from strop.sandbox.python.python_pool import PythonSandbox

ROOT = Path(__file__).parents[2]
NOBODY = 65534
_COPIED = (
    "strop/__init__.py",
    "strop/errors.py",
    "strop/sandbox",
    "strop/workers",
    "tests/__init__.py",
    "tests/sandbox",
)


@cache
def everybodys_python() -> str:
    """One that any user may start; nothing, if there is none."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    return python if python and not subprocess.run([python, "-c", new_enough]).returncode else ""


def users() -> list[str]:
    """As whom sandboxes can be asked for here."""
    return ["own", *(["nobody"] if os.getuid() == 0 and everybodys_python() else [])]


@contextmanager
def readable() -> Iterator[Path]:
    """A copy of the sandbox that another user may read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in _COPIED:
            source, target = ROOT / name, Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        yield Path(folder)


def boxed(user: str, program: str, **asked: Any) -> Ran:
    """Python text in the Python sandbox."""
    return _asked(user, program=program, **asked)


def shelled(user: str, *command: str, **asked: Any) -> Ran:
    """A command in the sandbox for all kinds."""
    return _asked(user, command=command, **asked)


def python(user: str, program: str, **asked: Any) -> Ran:
    """Python text in the sandbox for all kinds, by the system's interpreter."""
    return shelled(user, everybodys_python(), "-I", "-c", program, **asked)


def _asked(user: str, *, first: Sequence[str] = (), **asked: Any) -> Ran:
    """`first` is a command that becomes the one who asks."""
    if user == "own":
        return _told([*first, sys.executable], ROOT, asked)
    with readable() as folder:
        return _told([*first, everybodys_python()], folder, asked, user=NOBODY, group=NOBODY, extra_groups=[])


def _told(words: Sequence[str], folder: Path, asked: dict[str, Any], **who: Any) -> Ran:
    command = [*words, "-m", "tests.sandbox.users"]
    done = subprocess.run(
        command,
        cwd=folder,
        input=json.dumps(asked),
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        **who,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return Ran(Ending(found.pop("ending")), **found)


async def _answered(asked: dict[str, Any]) -> Ran:
    allowance = Allowance(asked.get("seconds", 30.0), asked.get("memory", 256 << 20))
    rest = (asked.get("stdin", ""), allowance, asked.get("folder", ""))
    if "command" in asked:
        return await Bubble(tuple(asked.get("seen", ()))).run(asked["command"], *rest)
    sandbox = PythonSandbox(KernelIsolation(asked.get("isolation", "files")))
    ran = await sandbox.run(asked["program"], *rest)
    await sandbox.close()
    return ran


if __name__ == "__main__":
    ran = asyncio.run(_answered(json.loads(sys.stdin.read())))
    print(json.dumps(vars(ran) | {"ending": ran.ending.value}))
