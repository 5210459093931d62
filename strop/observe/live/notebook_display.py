"""Progress of a run in a notebook: one table, updated in place, with a row for each held-out measurement."""

from __future__ import annotations

import time
from html import escape
from typing import Any

from rich.console import Console

from strop.observe.live.progress_bar import ShownStanding, clock

_SECONDS = 0.5  # between two drawings


class NotebookTable:
    """Implementation of `Line` with IPython's display."""

    def __init__(self, title: str, standing: ShownStanding, console: Console) -> None:
        self._title, self._standing, self._is_quiet = title, standing, console.quiet
        self._measured = list[tuple[int, dict[str, str]]]()
        self._handle: Any = None
        self._drawn = 0.0

    def start(self) -> None:
        if not self._is_quiet:
            from IPython.display import HTML, display

            self._handle = display(HTML(self.table()), display_id=True)

    def show(self, has_heldout: bool) -> None:
        if has_heldout:
            self._measured.append((self._standing.step, dict(self._standing.metrics())))
        if has_heldout or time.monotonic() - self._drawn > _SECONDS:
            self._draw()

    def stop(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._handle is not None:
            from IPython.display import HTML

            self._handle.update(HTML(self.table()))
            self._drawn = time.monotonic()

    def table(self) -> str:
        """As HTML: where the run stands, then what was measured on the way."""
        standing, left = self._standing, self._standing.seconds_left
        ending = f", {clock(left)} left" if left is not None else ""
        heading = f"<b>{escape(self._title)}</b> step {standing.step} of {standing.steps}{ending}"
        is_measured = bool(self._measured) and self._measured[-1][0] == standing.step
        now = [] if is_measured else [(standing.step, dict(standing.metrics()))]
        rows = [*now, *reversed(self._measured)]
        names = list(dict.fromkeys(name for _, metrics in rows for name in metrics))
        told = [[str(step), *(metrics.get(name, "") for name in names)] for step, metrics in rows]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("step", *names))
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in told)
        return f"{heading}<table><tr>{head}</tr>{body}</table>"
