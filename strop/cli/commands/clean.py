"""Command `strop clean`: lists checkpoints that no run needs, and removes them with --yes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from strop.errors import CheckpointError, ConfigurationError
from strop.observe.run_files.run_info import find_runs, is_running
from strop.storage import checkpoint
from strop.storage.run_folder import RunFolder


def clean(root: Path, is_wanted: bool) -> None:
    """For every run that is not running: all checkpoints but the newest complete and the best, and crash leftovers."""
    folders = [RunFolder(root)] if RunFolder(root).recipe.is_file() else find_runs(root)
    if not folders:
        raise ConfigurationError(f"{root} is not a run folder and contains none")
    total = 0
    for folder in folders:
        found = [] if is_running(folder) else list(needless(folder.path))
        size = sum(file.stat().st_size for each in found for file in each.rglob("*") if file.is_file())
        if found:
            names = ", ".join(str(each.relative_to(folder.path)) for each in found)
            print(f"{folder.path}: {names}, {size / 1e6:,.1f} MB")
        for each in found if is_wanted else ():
            shutil.rmtree(each)
        total += size
    then = "removed" if is_wanted else "can be removed: strop clean --yes"
    print(f"{total / 1e6:,.1f} MB {then}; the newest complete and the best checkpoint of each run are kept")


def needless(path: Path) -> Iterator[Path]:
    """Unneeded checkpoints of a run and its warm-up run; none where no checkpoint is complete."""
    for place in (each for each in path.rglob("checkpoints") if each.is_dir()):
        try:
            newest, _ = checkpoint.newest_whole(place)
        except CheckpointError:
            continue
        spared = (newest.name, (place / "best").resolve().name)
        yield from (each for each in checkpoint.listed(place) if each.name not in spared)
        yield from place.glob(".step-*.building")
