"""A table of many runs while they go on: live on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from strop.observe.report.compare_runs import Arms, live_table, progress_line

_SECONDS = 20.0  # between two lines where there is no terminal


@contextmanager
def shown(console: Console, arms: Arms, tokens: int) -> Iterator[Callable[[], None]]:
    """Gives what is to be called when somebody should look again."""
    if console.is_terminal:
        with Live(live_table(arms, tokens), console=console, auto_refresh=False) as live:
            yield lambda: live.update(live_table(arms, tokens), refresh=True)
        return
    began = told = time.monotonic()

    def look() -> None:
        nonlocal told
        if time.monotonic() - told >= _SECONDS:
            told = time.monotonic()
            console.print(f"{told - began:.0f} s: {progress_line(arms, tokens)}", soft_wrap=True)

    yield look
    console.print(live_table(arms, tokens))
