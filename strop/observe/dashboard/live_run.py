"""Cached view of a growing run folder, updated at every request."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from markupsafe import Markup

from strop.observe.dashboard.downsampled_series import Columns
from strop.observe.dashboard.jsonl_tail import Tail
from strop.observe.dashboard.live_pass_rates import LiveLessons
from strop.observe.live.status_file import read_status
from strop.observe.report.transcripts import Reader
from strop.observe.run_files.run_info import constants, envs_of
from strop.storage.ledger.browser import LedgerBrowser
from strop.storage.run_folder import RunFolder

_RECENT = 50  # steps whose time says how long the next ones take
_FRESH = 10.0  # seconds since the status was written: a run writes it every second, even when it hangs


@dataclass
class TaskKinds:
    """Sources and levels by name."""

    _row: int = 0  # the last task that was looked at
    _found: dict[str, tuple[str, int]] = field(default_factory=dict)

    def look(self, ledger: LedgerBrowser) -> dict[str, tuple[str, int]]:
        new, self._row = ledger.kinds(self._row)
        self._found |= {f"{source} level {level}": (source, level) for source, level in new}
        return dict(sorted(self._found.items(), key=lambda item: item[1]))


@dataclass
class LiveRun:
    """Read from several threads, one at a time."""

    folder: RunFolder
    columns: Columns = field(default_factory=Columns)
    status: dict[str, Any] = field(default_factory=dict)
    times: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))  # rows of timing.jsonl
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._metrics, self._timing = Tail(self.folder.metrics), Tail(self.folder.timing)
        self._written: tuple[int, int] | None = None  # when status.json was, and its size
        self._reader = Reader(None)
        self._drawn: dict[str, tuple[int, Markup]] = {}
        self.life = 0  # the process that writes it; another one may have taken back what was read
        self.kinds, self.lessons = TaskKinds(), LiveLessons()

    @property
    def reader(self) -> Reader:
        """Tokens as text, by the tokenizer of a checkpoint or of the model; looked for until one is there."""
        if self._reader.tokenizer is None:
            self._reader = Reader.of_run(self.folder, str(self.settings.get("model", "")))
        return self._reader

    def drawn(self, name: str, draw: Callable[[], Markup]) -> Markup:
        """Something made of its metrics, drawn again only when there are more of them."""
        at = self._metrics.offset + self._timing.offset
        if self._drawn.get(name, (-1,))[0] != at:
            self._drawn[name] = at, draw()
        return self._drawn[name][1]

    @property
    def name(self) -> str:
        return self.folder.path.name

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The plain fields of its recipe."""
        return constants(self.folder.recipe)

    @cached_property
    def envs(self) -> str:
        return envs_of(self.folder.recipe)

    def look(self) -> str:
        """Read what is new; the cursor is another one whenever there was anything."""
        with self._lock:
            metrics, timing = self._metrics.news(), self._timing.news()
            if metrics.is_anew or timing.is_anew:
                self._begin_again()
            else:
                self._take(metrics.rows, timing.rows)
            self._look_at_status()
            return f"{self._metrics.offset}:{self._timing.offset}:{self._written}:{self.state}"

    def _begin_again(self) -> None:
        """It went on from a checkpoint, and what was read of it may not be so any more."""
        self._metrics, self._timing = Tail(self.folder.metrics), Tail(self.folder.timing)
        self.columns = Columns()
        self.times.clear()
        self._take(self._metrics.news().rows, self._timing.news().rows)

    def _take(self, metrics: list[dict[str, Any]], timing: list[dict[str, Any]]) -> None:
        self.columns.add(metrics)
        self.columns.add(timing)
        self.times.extend(row for row in timing if row["step"] > 0)

    def _look_at_status(self) -> None:
        try:
            found = self.folder.status.stat()
        except OSError:
            self._written, self.status = None, {}
            return
        if (written := (found.st_mtime_ns, found.st_size)) != self._written:
            self._written, self.status = written, read_status(self.folder.status)
        if (life := int(self.status.get("pid", 0))) != self.life:
            self.life, self.kinds, self.lessons = life, TaskKinds(), LiveLessons()

    @property
    def step(self) -> int:
        return max(self.columns.last, int(self.status.get("step", 0)))

    @property
    def steps(self) -> int:
        """Planned."""
        return int(self.status.get("steps", self.settings.get("steps", 0)))

    @property
    def state(self) -> str:
        """Not asked of the folder's lock: whoever takes that for a moment may keep a run from starting."""
        if not self.status:
            return "not begun" if not self.step else "complete" if self.step >= self.steps else "stopped"
        if ended := self.status["ended"]:
            is_whole = ended == "ended" and self.step >= self.steps
            return "complete" if is_whole else "stopped"
        if self.age < _FRESH:
            return "running"
        return "silent" if _is_alive(int(self.status["pid"])) else "killed"

    @property
    def age(self) -> float:
        """Of its status, in seconds."""
        return time.time() - float(self.status.get("written", 0.0))

    @property
    def seconds_left(self) -> float | None:
        """By the mean of the last steps; None where nothing is left, or nothing is known."""
        if self.state != "running" or not self.times or self.step >= self.steps:
            return None
        a_step = sum(row.get("seconds", 0.0) for row in self.times) / len(self.times)
        return a_step * self._steps_left()

    def _steps_left(self) -> float:
        left, limit = float(self.steps - self.step), float(self.settings.get("max_generated_tokens") or 0)
        tokens = self.columns.value("tokens_generated")
        if limit and tokens and self.step:
            left = min(left, max(0.0, limit - tokens) * self.step / tokens)
        return left


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
