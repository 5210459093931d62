"""Command `strop why`: which part of a run waits for which, for how long, and the stacks of threads and tasks."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from strop.errors import ConfigurationError
from strop.observe.live.explain_stall import lines, sentence
from strop.observe.live.status_file import read_status
from strop.observe.metrics.reward_divergence import parting_of
from strop.observe.run_files.run_info import is_running
from strop.storage.run_folder import RunFolder, read_rows

_PATIENCE = 3.0  # seconds to wait for the requested stacks
_OLD = 5.0  # seconds after which a status counts as stale


def explain(path: Path, with_stacks: bool, as_json: bool) -> None:
    """Print what a run is doing, or was doing last."""
    folder = RunFolder(path)
    status = read_status(folder.status)
    if not status:
        known = "training has not started" if folder.recipe.is_file() else "it is not a run folder"
        raise ConfigurationError(f"{path} has no status.json: {known}")
    alive = is_running(folder)
    parting = parting_of(read_rows(folder.metrics))
    if as_json:
        plain = {"is_running": alive, "why": sentence(status), "parting": str(parting or ""), **status}
        print(json.dumps(plain, indent=1))
        return
    age = time.time() - status["written"]
    print(_heading(alive, status["ended"], age) + sentence(status))
    print("\n".join(f"  {line}" for line in [*lines(status), *([str(parting)] if parting else [])]))
    if alive and with_stacks:
        print("\n" + ask_for_stacks(folder, int(status["pid"])))
    elif folder.stacks.is_file() and with_stacks and (text := folder.stacks.read_text()):
        print(f"\nlast written stacks:\n{text}")


def _heading(alive: bool, ended: str, age: float) -> str:
    if alive:
        return "" if age < _OLD else f"no status written for {age:.0f} s, the run may be stuck; last state: "
    how = f"ended ({ended})" if ended and ended != "ended" else ("ended" if ended else "killed")
    return f"not running: {how} {age:.0f} s ago; last state: "


def ask_for_stacks(folder: RunFolder, pid: int) -> str:
    """Stacks from the run's status thread, or from its interpreter (SIGUSR1) if that thread does not answer."""
    folder.request.touch()
    if _is_answered(lambda: not folder.request.exists()):
        return folder.stacks.read_text()
    folder.request.unlink(missing_ok=True)
    before = folder.stacks.stat().st_size if folder.stacks.is_file() else 0
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGUSR1)
    if _is_answered(lambda: folder.stacks.is_file() and folder.stacks.stat().st_size > before):
        return "stacks from the interpreter (the status thread does not answer):\n" + folder.stacks.read_text()
    return f"process {pid} answers neither the request for stacks nor SIGUSR1"


def _is_answered(answered: Callable[[], bool]) -> bool:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if answered():
            return True
        time.sleep(0.05)
    return False
