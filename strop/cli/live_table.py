"""Live table of many runs on a terminal; elsewhere a progress line every 20 seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from strop.observe.report.compare_runs import Arms, live_table, progress_line

_SECONDS = 20.0  # between progress lines without a terminal


@contextmanager
def shown(console: Console, arms: Arms, tokens: int) -> Iterator[Callable[[], None]]:
    """Context that yields a function which refreshes the table."""
    if console.is_terminal:
        with Live(live_table(arms, tokens), console=console, auto_refresh=False) as live:
            yield lambda: live.update(live_table(arms, tokens), refresh=True)
        return
    began = printed = time.monotonic()

    def refresh() -> None:
        nonlocal printed
        if time.monotonic() - printed >= _SECONDS:
            printed = time.monotonic()
            console.print(f"{printed - began:.0f} s: {progress_line(arms, tokens)}", soft_wrap=True)

    yield refresh
    console.print(live_table(arms, tokens))
