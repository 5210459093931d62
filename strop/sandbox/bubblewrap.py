"""Sandbox for shells, compilers and other programs: bubblewrap, with namespaces of its own.

Programs see the system's programs and their own folder: no network, no other process, no environment variables, no
keys, no privileges. Child processes end with the program. Everything written outside the folder is in memory; memory,
number of processes and added disk space are limited for all processes together. Needs `bwrap` 0.8 or newer, and user
namespaces.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from strop.errors import ConfigurationError
from strop.sandbox.execution import MOST_PROCESSES, USUAL, Allowance, Ending, Ran
from strop.sandbox.kernel_isolation import cgroup, seccomp
from strop.sandbox.kernel_isolation.libc import libc
from strop.sandbox.kernel_isolation.unprivileged_user import unused_users
from strop.sandbox.kill_tree import ended, kill
from strop.sandbox.layout import EMPTY, FOLDER, HOME, MEMORY, NOTHING, PLACE, SandboxLayout
from strop.sandbox.resource_watch import Overseer
from strop.sandbox.watched_process import limit, watched
from strop.sandbox.writable_folder import WritableFolder

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_MORE = {  # limits of each process, beside those of all programs
    resource.RLIMIT_NPROC: 2 * MOST_PROCESSES,  # of all together: what stops those that are faster than who counts them
    resource.RLIMIT_NOFILE: 256,  # also of files on their way through sockets, which nobody sees
    resource.RLIMIT_MEMLOCK: 0,
    resource.RLIMIT_MSGQUEUE: 0,
}
_USER = "1000"  # as whom it sees itself
_SANDBOX = (
    *(
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
    ),
    *("--unshare-user", "--disable-userns", "--uid", _USER, "--gid", _USER),  # nobody becomes root of namespaces within
    *("--proc", "/proc", "--dev", "/dev"),
    *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", HOME, "--setenv", "LANG", "C.UTF-8"),
)
# what of /proc tells of the machine, or of others on it; the rest can be read alone
_MASKED = (
    *("acpi", "asound", "scsi", "interrupts", "kcore", "keys", "key-users", "latency_stats", "sched_debug"),
    *("sysrq-trigger", "timer_list", "timer_stats"),
)
_CHUNK = 1 << 16
_LONG = Allowance(seconds=20.0)


def problem(seen: tuple[str, ...] = ()) -> str:
    """Why bubblewrap cannot be used here, or these files not be seen in it; nothing, if all is well."""
    if shutil.which("bwrap") is None:
        return "there is no program bwrap: install bubblewrap"
    if not seccomp.is_known():
        return "the calls of this machine's kernel are not known by number: shells need x86-64"
    with ThreadPoolExecutor(1) as thread:  # a loop may run in this one
        ran = thread.submit(asyncio.run, Bubble(seen).run(["sleep", "0.1"], "", _LONG)).result()
    return "" if ran.is_well else f"bubblewrap does not work here: {ran.stderr.strip() or ran.ending.value}"


@dataclass(frozen=True)
class Bubble:
    """Command in a bubblewrap sandbox; `folder`, if there is one, is its writable home."""

    seen: tuple[str, ...] = ()  # files and folders beside the system's, which may be read
    environment: tuple[tuple[str, str], ...] = ()

    async def run(self, command: Sequence[str], stdin: str = "", allowance: Allowance = USUAL, folder: str = "") -> Ran:
        if (program := _program(os.environ.get("PATH", os.defpath))) is None:
            raise ConfigurationError("shells run in bubblewrap alone, and there is no program bwrap: install it")
        try:
            writable = WritableFolder(folder) if folder else None
        except OSError as error:
            return Ran(Ending.SETUP, stderr=f"{folder} cannot be written to: {error}")
        try:
            users = unused_users()
        except OSError as error:
            return Ran(Ending.SETUP, stderr=str(error))
        group = cgroup.made(cgroup.limits(allowance.memory, 2 * MOST_PROCESSES))
        layout = SandboxLayout(allowance.memory, self.seen, writable, group, users)
        try:
            ran = await _run((program, *self._sandbox(layout)), command, stdin, allowance, layout)
            return replace(ran, ending=Ending.MEMORY) if group is not None and group.is_full() else ran
        finally:
            if group is not None:
                group.remove()
            if writable is not None and os.geteuid() == 0:
                writable.take_back()

    def _sandbox(self, layout: SandboxLayout) -> list[str]:
        """Only what the machine brings, and the layout."""
        told = [each for name, value in self.environment for each in ("--setenv", name, value)]
        found = [*_SANDBOX, *_machine(), *told]
        tmp, shm, home = (f"{PLACE}/{name}" for name in MEMORY)
        found += ["--bind", tmp, "/tmp", "--bind", shm, "/dev/shm", "--bind", FOLDER if layout.writable else home, HOME]
        for path in self.seen:
            found += ["--ro-bind", layout.shown(path), path]
        return [*found, *(each for path in ("/dev", "/proc", "/") for each in ("--remount-ro", path)), "--chdir", HOME]


@cache
def _program(path: str) -> str | None:
    """Where bubblewrap is, looked for once."""
    return shutil.which("bwrap", path=path)


@cache
def _machine() -> tuple[str, ...]:
    """What is of the machine: its programs, and what it does not tell."""
    found: list[str] = []
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            found += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    for path in (Path("/proc", name) for name in _MASKED):
        if path.exists():
            found += ["--ro-bind", EMPTY if path.is_dir() else NOTHING, str(path)]
    return tuple(found)


async def _run(
    sandbox: Sequence[str], command: Sequence[str], stdin: str, allowance: Allowance, layout: SandboxLayout
) -> Ran:
    begun, (status, told), (rules, filled) = time.monotonic(), os.pipe(), os.pipe()
    os.write(filled, seccomp.all_kinds(may_send=layout.writable is None))
    os.close(filled)
    told_and_filtered = ("--json-status-fd", str(told), "--seccomp", str(rules))
    try:
        process = await _started((*sandbox, *told_and_filtered, "--", *command), (told, rules), allowance, layout)
    except BaseException as error:
        why = os.read(status, _CHUNK).decode() or str(error)
        os.close(status)
        if isinstance(error, (OSError, subprocess.SubprocessError)):
            return Ran(Ending.SETUP, stderr=why)
        raise
    overseer = Overseer(status, allowance.memory, layout.writable, partial(kill, process))
    try:
        ran = await watched(process, stdin.encode(), allowance, begun)
    finally:
        await ended(process)
        overseer.release()
    return overseer.judged(ran)


async def _started(
    command: Sequence[str], handles: tuple[int, int], allowance: Allowance, layout: SandboxLayout
) -> Process:
    """The first handle is where bubblewrap, and who becomes it, say what became of the command."""
    libc()

    def enter() -> None:
        try:
            layout.enter()
            limit(allowance, _MORE)
        except BaseException as error:
            os.write(handles[0], f"the sandbox cannot be set up: {error}".encode())
            raise

    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            start_new_session=True,
            pass_fds=handles,
            preexec_fn=enter,
        )
    finally:
        for handle in handles:
            os.close(handle)
