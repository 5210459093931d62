"""`strop why`: who waits for whom, for how long, and where every thread and task stands."""

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

_PATIENCE = 3.0  # seconds for an answer to a request
_OLD = 5.0  # seconds after which a status says that nobody writes it


def explain(path: Path, with_stacks: bool, as_json: bool) -> None:
    """Print what a run does, or what it did last."""
    folder = RunFolder(path)
    status = read_status(folder.status)
    if not status:
        known = "it has not begun to train" if folder.recipe.is_file() else "it is no run folder"
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
        print(f"\nstacks it left:\n{text}")


def _heading(alive: bool, ended: str, age: float) -> str:
    if alive:
        return "" if age < _OLD else f"it has not written its status for {age:.0f} s, so it may be stuck; then: "
    how = f"it is over ({ended})" if ended and ended != "ended" else ("it is over" if ended else "it was killed")
    return f"not running: {how}, {age:.0f} s ago; the last state: "


def ask_for_stacks(folder: RunFolder, pid: int) -> str:
    """Ask its status thread, and where that does not answer the interpreter itself."""
    folder.request.touch()
    if _is_answered(lambda: not folder.request.exists()):
        return folder.stacks.read_text()
    folder.request.unlink(missing_ok=True)
    before = folder.stacks.stat().st_size if folder.stacks.is_file() else 0
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGUSR1)
    if _is_answered(lambda: folder.stacks.is_file() and folder.stacks.stat().st_size > before):
        return "its threads, from the interpreter (its status thread does not answer):\n" + folder.stacks.read_text()
    return f"process {pid} answers neither a request nor SIGUSR1"


def _is_answered(answered: Callable[[], bool]) -> bool:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if answered():
            return True
        time.sleep(0.05)
    return False
