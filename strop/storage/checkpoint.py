"""Checkpoints: Hugging Face folders plus the state needed to resume to the same bits; written atomically."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from strop.capabilities import Remembers, Stores, outermost, parts
from strop.errors import CheckpointError
from strop.roles import Buffer
from strop.types import Group

_MANIFEST = "manifest.json"
POLICIES = "policy_names"  # the folder in which, where several policy names learn, all but the first have their models


def write(folder: Path, step: int, run: Any, progress: dict[str, Any]) -> Path:
    """Write `folder/step-N`; it appears under its name only when every byte is on disk."""
    target, building = folder / f"step-{step}", folder / f".step-{step}.building"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    try:
        for path, part in outermost(run, Stores):
            place = _place(building, path)
            place.mkdir(exist_ok=True)
            part.save(place)
        states = {path: part.state() for path, part in parts(run) if isinstance(part, Remembers)}
        _write_json(building / "roles.json", {"step": step, "progress": progress, "roles": states})
        _write_json(building / _MANIFEST, {"step": step, "files": _digests(building)})
        _sync(building)
        shutil.rmtree(target, ignore_errors=True)
        building.rename(target)
        _sync_folder(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(building, ignore_errors=True)
        left = shutil.disk_usage(folder).free
        raise CheckpointError(
            f"could not write {target} ({getattr(error, 'strerror', None) or error}; {left / 1e6:.0f} MB free): "
            "the checkpoints before it are whole, free some space and resume"
        ) from error
    return target


def _place(checkpoint: Path, path: str) -> Path:
    """The trainer's weights are the model that anything can load; every other part has a folder of its own."""
    return checkpoint if path == "trainer" else checkpoint / path


def prune(folder: Path, keep: int, spared: Path | None = None) -> None:
    """Remove all but the newest `keep` checkpoints (0: none) and the one that is spared."""
    for path in listed(folder)[:-keep] if keep else ():
        if path != spared:
            shutil.rmtree(path)


def listed(folder: Path) -> list[Path]:
    """Checkpoints by step, oldest first."""
    found = [p for p in folder.glob("step-*") if p.name.removeprefix("step-").isdigit()]
    return sorted(found, key=lambda p: int(p.name.removeprefix("step-")))


def verify(checkpoint: Path) -> None:
    """Raise unless every file is there with the bytes that were written."""
    try:
        manifest = json.loads((checkpoint / _MANIFEST).read_text())
        expected = dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{checkpoint} has no readable {_MANIFEST}: {error}") from error
    for name, digest in expected.items():
        path = checkpoint / name
        if not path.is_file():
            raise CheckpointError(f"{checkpoint} is cut short: {name} is missing")
        if _digest(path) != digest:
            raise CheckpointError(f"{checkpoint} is damaged: {name} is not what was written")


def newest_whole(folder: Path) -> tuple[Path, list[str]]:
    """The newest checkpoint that is whole, and what was wrong with newer ones."""
    problems: list[str] = []
    for checkpoint in reversed(listed(folder)):
        try:
            verify(checkpoint)
            return checkpoint, problems
        except CheckpointError as error:
            problems.append(str(error))
    raise CheckpointError("; ".join(problems) or f"{folder} holds no checkpoint")


def read(checkpoint: Path, run: Any, group_of: Callable[[int], Group]) -> dict[str, Any]:
    """Put every role of an opened run where it was, buffers with their groups; returns the progress that was saved."""
    saved = json.loads((checkpoint / "roles.json").read_text())
    states: dict[str, Any] = saved["roles"]
    for path, stores in outermost(run, Stores):
        stores.resume(_place(checkpoint, path))
    for path, part in parts(run):
        if isinstance(part, Buffer | Remembers) and path not in states:
            raise CheckpointError(f"{checkpoint} knows nothing of {path}: was the recipe changed?")
        if isinstance(part, Buffer):
            part.restore(states[path], group_of)
        elif isinstance(part, Remembers):
            part.restore(states[path])
    progress: dict[str, Any] = saved["progress"]
    return progress


def remind(checkpoint: Path, evaluation: Any) -> None:
    """Put what a run measures with where it was: memories that training filled."""
    states: dict[str, Any] = json.loads((checkpoint / "roles.json").read_text())["roles"]
    for path, part in parts(evaluation, "evaluation"):
        if isinstance(part, Remembers):
            part.restore(states[path])


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _digest(path) for path in files}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, data: dict[str, Any]) -> None:
    # in the order of the memories themselves: who forgets the oldest first would forget others after a restart
    path.write_text(json.dumps(data, indent=1))


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
