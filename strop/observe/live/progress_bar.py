"""Progress of a run: one live line on a terminal, occasional plain lines elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from strop.types import Metrics

_PLAIN_LINES = 20  # about as many over a whole run, beside those with a held-out metric


@dataclass
class ShownStanding:
    """Metrics of the line, where known."""

    steps: int
    max_tokens: int = 0  # generated tokens that end the run; 0: no limit
    step: int = 0
    tokens: float = 0.0
    reward: float | None = None  # of the last step
    failed: dict[str, float] = field(default_factory=dict)  # by whose fault: share of the last step's rollouts
    first_heldout: float | None = None
    heldout: float | None = None
    tokens_per_second: float | None = None
    lost: dict[str, float] = field(default_factory=dict)  # by part: share of its questions without a readable answer
    step_seconds: list[float] = field(default_factory=list)  # since this process started
    stepped_at: float = field(default_factory=time.monotonic)

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.step, self.stepped_at = step, time.monotonic()
        self.tokens = metrics.get("tokens_generated", self.tokens)
        if (reward := metrics.get("reward")) is not None and math.isfinite(reward):
            self.reward = reward
        self.failed = failed_shares(metrics) if "failed_share" in metrics else self.failed
        self.lost |= lost_shares(metrics)
        if (heldout := metrics.get("heldout")) is not None:
            self.heldout = heldout
            self.first_heldout = heldout if self.first_heldout is None else self.first_heldout
        if step and timing.get("seconds"):
            self.step_seconds.append(timing["seconds"])
            self.tokens_per_second = timing.get("tokens_per_second")

    @property
    def seconds_left(self) -> float | None:
        if not self.step_seconds or self.step >= self.steps:
            return None
        left = self.steps - self.step
        if self.max_tokens and self.tokens:
            left = min(left, math.ceil(max(0.0, self.max_tokens - self.tokens) * self.step / self.tokens))
        a_step = sum(self.step_seconds) / len(self.step_seconds)
        return max(0.0, left * a_step - (time.monotonic() - self.stepped_at))

    def metrics(self) -> list[tuple[str, str]]:
        """Name and value of what is known."""
        found: list[tuple[str, str]] = []
        if self.reward is not None:
            found.append(("reward", f"{self.reward:.2f}"))
        if self.heldout is not None and self.first_heldout is not None:
            before = "" if self.heldout == self.first_heldout else f"{self.first_heldout:.0%} → "
            found.append(("held-out", f"{before}{self.heldout:.0%}"))
        found += [(f"{who} failed", f"{share:.0%}") for who, share in self.failed.items() if share]
        found += [(f"{role} unanswered", f"{share:.0%}") for role, share in self.lost.items() if share]
        if self.tokens_per_second is not None:
            found.append(("tok/s", f"{self.tokens_per_second:,.0f}"))
        return found


def failed_shares(metrics: Metrics) -> dict[str, float]:
    """Shares of rollouts that failed, by a reward's fault and by the environment's."""
    by_reward = metrics.get("reward_failed_share", 0.0)
    return {"reward": by_reward, "environment": max(0.0, metrics["failed_share"] - by_reward)}


def lost_shares(metrics: Metrics) -> dict[str, float]:
    """For each named part that was asked, the share of its questions that failed or whose answer could not be read."""
    roles = [name.removesuffix("/asked") for name, count in metrics.items() if name.endswith("/asked") and count]
    lost = {role: metrics.get(f"{role}/failed", 0.0) + metrics.get(f"{role}/unread", 0.0) for role in roles}
    return {role: count / metrics[f"{role}/asked"] for role, count in lost.items() if f"{role}/failed" in metrics}


class Line(Protocol):
    """Output of the progress line."""

    def __init__(self, title: str, standing: ShownStanding, console: Console) -> None: ...
    def start(self) -> None: ...
    def show(self, has_heldout: bool) -> None: ...
    def stop(self) -> None: ...


class ProgressBar:
    """Watcher that shows a run's progress; use it as a context manager."""

    def __init__(self, title: str, steps: int, console: Console, max_tokens: int = 0) -> None:
        self._console, self._title = console, title
        self._prepare(title, steps, max_tokens)

    def _prepare(self, title: str, steps: int, max_tokens: int) -> None:
        self.standing = ShownStanding(steps, max_tokens)
        self._line: Line = self._kind()(title, self.standing, self._console)

    def _kind(self) -> type[Line]:
        if self._console.is_jupyter:
            from strop.observe.live.notebook_display import NotebookTable

            return NotebookTable
        return LiveLine if self._console.is_terminal else PlainLines

    def begins(self, title: str, steps: int, max_tokens: int = 0) -> None:
        """A line of its own for each run where one warms up for another."""
        if (title, steps) != (self._title, self.standing.steps) or self.standing.step:
            self._line.stop()
            self._title = title
            self._prepare(title, steps, max_tokens)
            self._line.start()

    def __enter__(self) -> Self:
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.stop()

    def stepped(self, step: int, metrics: Metrics, timing: Metrics) -> None:
        self.standing.stepped(step, metrics, timing)
        self._line.show("heldout" in metrics)


class LiveLine:
    """One line, updated in place."""

    def __init__(self, title: str, standing: ShownStanding, console: Console) -> None:
        self._standing = standing
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8, max_width=40)),
            TextColumn("{task.completed:.0f}/{task.total:.0f}", table_column=Column(no_wrap=True)),
            _Metrics(standing, table_column=Column(no_wrap=True)),
            console=console,
            expand=True,
            refresh_per_second=2,  # the processor belongs to the run
        )
        self._task = self._progress.add_task(title, total=standing.steps)

    def start(self) -> None:
        self._progress.start()

    def show(self, has_heldout: bool) -> None:
        self._progress.update(self._task, completed=self._standing.step, refresh=has_heldout)

    def stop(self) -> None:
        self._progress.stop()


class _Metrics(ProgressColumn):
    """Reward, held-out accuracy, speed and time left."""

    max_refresh = 0.4

    def __init__(self, standing: ShownStanding, table_column: Column) -> None:
        super().__init__(table_column)
        self._standing = standing

    def render(self, task: Task) -> Text:
        pieces: list[tuple[str, str] | str] = []
        for name, value in self._standing.metrics():
            style = "bold green" if name == "held-out" else "cyan"
            label = (f" {name} ", "dim")
            pieces += [(f" {value}", style), label] if name == "tok/s" else [label, (value, style)]
        if (left := self._standing.seconds_left) is not None:
            pieces += [(f" {clock(left)} left", "yellow")]
        return Text.assemble(*(pieces or [("measuring held-out accuracy before training", "dim")]))


class PlainLines:
    """Lines for a log: the first, the last, those with a held-out metric, and a few between."""

    def __init__(self, title: str, standing: ShownStanding, console: Console) -> None:
        self._title, self._standing, self._console = title, standing, console
        self._every = max(1, standing.steps // _PLAIN_LINES)

    def start(self) -> None:
        pass

    def show(self, has_heldout: bool) -> None:
        standing = self._standing
        if has_heldout or standing.step % self._every == 0 or standing.step == standing.steps:
            metrics = "  ".join(f"{name} {value}" for name, value in standing.metrics())
            left = standing.seconds_left
            ending = f"  {clock(left)} left" if left is not None else ""
            line = f"{self._title} step {standing.step}/{standing.steps}  {metrics}{ending}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        pass


def clock(seconds: float) -> str:
    """1:05, or 2:03:04 where it takes hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
