"""Prior runs of an effect experiment (teachers, judges, pools), made by the first process that needs one while others
wait.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from strop.launch.running.launch import launch
from strop.run import Run


def earlier_run(kept: Path, run: Callable[[], Run], then: Callable[[Path], object] = lambda made: None) -> Path:
    """The folder of the run that is kept there; `then` is done once to a run just made, before anybody sees it."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            making = Path(tempfile.mkdtemp(dir=kept.parent))
            launch(run(), making, "run")
            then(making / "run")
            (making / "run").rename(kept)
            shutil.rmtree(making, ignore_errors=True)
    return kept.resolve()


def earlier_model(kept: Path, run: Callable[[], Run]) -> str:
    """The folder of the last checkpoint of such a run."""
    checkpoints = (earlier_run(kept, run) / "checkpoints").glob("step-*")
    return str(max(checkpoints, key=lambda folder: int(folder.name.removeprefix("step-"))))
