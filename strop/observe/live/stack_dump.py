"""Stack dump of all threads and asyncio tasks, with equal stacks merged."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from types import FrameType
from typing import Any


def stacks(loop: asyncio.AbstractEventLoop) -> str:
    """May be asked from any thread, also while the loop hangs."""
    return "\n".join([*_threads(), *_tasks(loop)]) + "\n"


def _threads() -> list[str]:
    frames = sys._current_frames()
    mine = threading.get_ident()
    others = [thread for thread in threading.enumerate() if thread.ident in frames and thread.ident != mine]
    return [f"thread {each.name}\n{''.join(traceback.format_stack(frames[each.ident or 0]))}" for each in others]


def _tasks(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Each waiting task, innermost call last."""
    found: dict[str, list[str]] = {}
    for task in asyncio.all_tasks(loop):
        found.setdefault("".join(_lines(task)), []).append(task.get_name())
    return [f"{_named(names)}\n{stack}" for stack, names in found.items()]


def _named(names: list[str]) -> str:
    return f"task {names[0]}" if len(names) == 1 else f"{len(names)} tasks, among them {names[0]}"


def _lines(task: asyncio.Task[Any]) -> list[str]:
    """A suspended task keeps one frame per coroutine it waits for; `get_stack` would show the first alone."""
    summary = traceback.StackSummary()
    coroutine: Any = task.get_coro()
    while (frame := _frame(coroutine)) is not None:
        summary.append(traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        coroutine = getattr(coroutine, "cr_await", getattr(coroutine, "ag_await", None))
    return summary.format() or ["  not started\n"]


def _frame(coroutine: Any) -> FrameType | None:
    return getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
