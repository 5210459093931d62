"""Runs that are killed in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.launch.running.test_resume import CONTEXT

_PATIENCE = 120.0  # seconds


def killed_at(step: int, run: Path, module: str, begin: Callable[..., None], *args: Any) -> None:
    """Starts `begin(*args)`, which makes this run, in a process, and ends it once that checkpoint is there."""
    CONTEXT.set_forkserver_preload([module])
    child = CONTEXT.Process(target=begin, args=args)
    child.start()
    until = time.monotonic() + _PATIENCE
    while not (run / "checkpoints" / f"step-{step}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    child.kill()
    child.join()
