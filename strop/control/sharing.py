"""What peers share in a folder: groups of attempts as text, one file each, read with as little trust as a stranger's.

A group's file is FOLDER/NODE/NUMBER.json. It is written whole or not at all, and a reader skips what it cannot read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.stats.task_lineage import plain, unplain
from strop.types import Task

_MOST_BYTES = 1_000_000  # of one file
_SUFFIX = ".json"
FOREIGN = "@"  # begins the id of a task whose attempts somebody else made; the group's name follows


@dataclass(frozen=True)
class SharedGroup:
    """A task and what somebody replied to it, attempt by attempt, turn by turn."""

    task: Task
    replies: tuple[tuple[str, ...], ...]


def publish(folder: Path, node: str, number: int, group: SharedGroup) -> None:
    """Put a group where others find it."""
    (folder / node).mkdir(parents=True, exist_ok=True)
    target = folder / node / f"{number}{_SUFFIX}"
    written = target.with_name(f".{target.name}.{os.getpid()}")
    written.write_text(json.dumps({"task": plain(group.task), "replies": group.replies}))
    written.replace(target)


def published(folder: Path, without: str = "") -> list[str]:
    """The names of all groups that nodes but this one have shared, in order: NODE/NUMBER."""
    if not folder.is_dir():
        return []
    nodes = sorted(path for path in folder.iterdir() if path.is_dir() and path.name != without)
    files = [path for node in nodes for path in node.glob(f"[0-9]*{_SUFFIX}")]
    return [f"{path.parent.name}/{path.stem}" for path in sorted(files, key=_place)]


def _place(path: Path) -> tuple[str, int, str]:
    return path.parent.name, len(path.stem), path.stem


def read(folder: Path, name: str) -> SharedGroup | None:
    """The group of this name; None where there is none, or none that can be read."""
    path = folder / f"{name}{_SUFFIX}"
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # a pipe would be waited for
            return None
        return _read(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read(data: dict[str, Any]) -> SharedGroup:
    replies: Sequence[Sequence[str]] = data["replies"]
    found = tuple(tuple(str(text) for text in attempt) for attempt in replies if not isinstance(attempt, str))
    task = unplain(data["task"])
    words = [task.answer, task.source, task.id, *(text for each in task.messages for text in (each.role, each.content))]
    if not all(isinstance(word, str) for word in words):
        raise TypeError("a task is made of texts")
    return SharedGroup(task, tuple(attempt for attempt in found if attempt))
