"""Shells, compilers and programs of all kinds: bubblewrap, which gives each a machine of its own to look at.

They see the system's programs, a folder of theirs and nothing else: no network, no other process, no environment, no
privileges. What they start ends with them. All that they may write in without a folder is memory, and bounded. It needs
the program `bwrap`, from version 0.8 on, and namespaces that a user may make.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from strop.errors import ConfigurationError
from strop.processes.box.ending import ended
from strop.processes.box.ran import USUAL, Allowance, Ending, Ran
from strop.processes.box.watching import limit, watched

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_HOME = "/home/box"
_WALLS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", "box"),
    *("--unshare-user", "--disable-userns"),  # nobody becomes root of namespaces within
    *("--proc", "/proc", "--dev", "/dev", "--chdir", _HOME),
    *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", _HOME, "--setenv", "LANG", "C.UTF-8"),
)
_CHUNK = 1 << 16


def problem() -> str:
    """Why bubblewrap cannot be used here; nothing, if it can."""
    if (program := shutil.which("bwrap")) is None:
        return "there is no program bwrap: install bubblewrap"
    tried = subprocess.run(
        [program, *_WALLS, *_mounts("", USUAL.memory), "true"], capture_output=True, text=True, check=False
    )
    return f"bubblewrap does not work here: {tried.stderr.strip()}" if tried.returncode else ""


@dataclass(frozen=True)
class Bubble:
    """Runs a command; `folder`, if there is one, is its home and may be written in."""

    seen: tuple[str, ...] = ()  # files and folders beside the system's, which may be read
    environment: tuple[tuple[str, str], ...] = ()

    async def run(self, command: Sequence[str], stdin: str = "", allowance: Allowance = USUAL, folder: str = "") -> Ran:
        if (program := shutil.which("bwrap")) is None:
            raise ConfigurationError("shells run in bubblewrap alone, and there is no program bwrap: install it")
        begun, (status, told) = time.monotonic(), os.pipe()
        try:
            more = [each for name, value in self.environment for each in ("--setenv", name, value)]
            more += [each for path in self.seen for each in ("--ro-bind", path, path)]
            walls = ("--json-status-fd", str(told), *_WALLS, *_mounts(folder, allowance.memory, more))
            process = await _started((program, *walls, *command), told, allowance)
            try:
                ran = await watched(process, stdin.encode(), allowance, begun)
            finally:
                await ended(process)
            is_run = ran.ending is not Ending.FINISHED or b"exit-code" in os.read(status, _CHUNK)
            return ran if is_run else replace(ran, ending=Ending.SETUP)
        finally:
            os.close(status)


async def _started(command: Sequence[str], told: int, allowance: Allowance) -> Process:
    """`told` is where bubblewrap says what became of the command: nothing, where it could not begin."""
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            start_new_session=True,
            pass_fds=(told,),
            preexec_fn=lambda: limit(allowance),
        )
    finally:
        os.close(told)


def _mounts(folder: str, memory: int, more: Sequence[str] = ()) -> list[str]:
    """Only what the system brings; links stay links. Folders that are memory hold so much each, all else is fixed."""
    found: list[str] = []
    for path in _SYSTEM:
        if Path(path).is_symlink():
            found += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            found += ["--ro-bind", path, path]
    for path in ("/tmp", "/dev/shm", *([] if folder else [_HOME])):
        found += ["--size", str(memory), "--tmpfs", path]
    return [*found, *(["--bind", folder, _HOME] if folder else []), *more, "--remount-ro", "/dev", "--remount-ro", "/"]
