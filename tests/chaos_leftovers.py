"""What a run may leave on the machine beside its folder: nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

MARK = "STROP_CHAOS"  # in the episode of all that a campaign starts, however indirectly


def left_behind(root: Path) -> list[str]:
    """Processes that the campaign started, however indirectly, and that are still there."""
    mark, found = f"{MARK}={root}".encode(), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def things() -> set[str]:
    """Mounts, shared memory, files of ours beside run folders, keys and named sockets, as they are now."""
    return set(_things())


def _things() -> Iterator[str]:
    yield from (f"mount {line.split()[1]}" for line in _lines("/proc/mounts"))
    yield from (f"shared memory {path.name}" for path in Path("/dev/shm").iterdir() if "pytest" not in path.name)
    yield from (f"file {path}" for path in Path(tempfile.gettempdir()).glob("*strop*"))
    for line in _lines("/proc/keys"):
        serial, *_, kind, name = re.split(r"\s+", line.strip(), maxsplit=8)[:9]
        yield f"key {kind} {name.rpartition(':')[0] or name} {serial}"
    named = (line.split(maxsplit=7) for line in _lines("/proc/net/unix")[1:])
    yield from (f"socket {each[7]}" for each in named if len(each) == 8)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
