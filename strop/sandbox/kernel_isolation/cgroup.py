"""Control group (cgroup v2) of a sandbox: limits of memory and processes, enforced by the kernel.

Used where this user may create a group with those limits: as root on a machine whose groups systemd manages, or where a
group is delegated. Elsewhere, and in addition, `resource_watch` enforces the limits.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from strop.sandbox.kernel_isolation.libc import tell, told

_SWAP = "memory.swap.max"
_COUNT = itertools.count()
_GONE_SECONDS = 1.0  # in which the kernel lets go of those that were killed


def limits(memory: int, processes: int) -> dict[str, str]:
    """By the names of the kernel's files; all that is in a group is killed at once."""
    return {"memory.max": str(memory), _SWAP: "0", "memory.oom.group": "1", "pids.max": str(processes)}


@dataclass(frozen=True)
class Cgroup:
    """Control group created for one sandbox."""

    place: Path

    def join(self) -> None:
        """For this process and all that it starts."""
        tell(f"{self.place}/cgroup.procs", "0")

    def is_full(self) -> bool:
        """Whether somebody in it was killed because its memory is spent."""
        with suppress(OSError):
            found = dict(line.split() for line in (self.place / "memory.events").read_text().splitlines())
            return int(found["oom_kill"]) > 0
        return False

    def remove(self) -> None:
        """With all who are in it."""
        (self.place / "cgroup.kill").write_text("1")
        until = time.monotonic() + _GONE_SECONDS
        while True:
            try:
                return self.place.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.001)


def made(wanted: Mapping[str, str]) -> Cgroup | None:
    """A group with these limits; None, where there is none to be had."""
    for parent in _parents():
        if not {name.split(".")[0] for name in wanted} <= _delegated(parent):
            continue
        place = parent / f"strop-{os.getpid()}-{next(_COUNT)}"
        try:
            place.mkdir()
        except OSError:
            continue
        group = Cgroup(place)
        try:
            for name, value in wanted.items():
                if name != _SWAP or (place / name).exists():  # a kernel without swap has no limit of it
                    (place / name).write_text(value)
            return group
        except OSError:
            group.remove()
    return None


def _delegated(parent: Path) -> set[str]:
    """What is limited in groups of this one."""
    with suppress(OSError):
        return {"cgroup", *told(f"{parent}/cgroup.subtree_control").split()}
    return set()


@cache
def _parents() -> tuple[Path, ...]:
    """The group that this process is in, then the first of all."""
    with suppress(OSError, StopIteration):
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        roots = [Path(words[1]) for words in mounts if words[2] == "cgroup2"]
        own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::")[3:]
        return tuple(dict.fromkeys(each for root in roots for each in (root / own.lstrip("/"), root)))
    return ()
