"""Timers of a step: its phases, and busy time of engines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

from strop.types import Metrics

# How long engines had anything to do: seconds in which at least one request was open.


@dataclass
class BusyClock:
    """Busy time: a request runs inside `with`; any number may at once, in one thread."""

    now: Callable[[], float] = time.monotonic
    _open: int = 0
    _since: float = 0.0  # when the first of those that are open was asked
    _closed: float = 0.0  # seconds before that

    def __enter__(self) -> None:
        if not self._open:
            self._since = self.now()
        self._open += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._open -= 1
        if not self._open:
            self._closed += self.now() - self._since

    @property
    def seconds(self) -> float:
        """Since the clock was made."""
        return self._closed + (self.now() - self._since if self._open else 0.0)


# The time of a step: how long training waited, for whom, and how long it trained.


class _TimePoint(NamedTuple):
    at: float
    busy: float  # seconds in which engines had something to do

    def since(self, other: _TimePoint) -> _TimePoint:
        return _TimePoint(self.at - other.at, self.busy - other.busy)


@dataclass
class Laps:
    """Phases recorded by the training loop; nothing here reaches metrics: all of it depends on the wall clock."""

    clock: BusyClock
    _begun: _TimePoint = field(init=False, repr=False)
    _drawn: _TimePoint = field(init=False, repr=False)
    _trained: _TimePoint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._begun = self._now()

    def _now(self) -> _TimePoint:
        return _TimePoint(self.clock.now(), self.clock.seconds)

    def batch_ready(self) -> None:
        """The groups of a step are there."""
        self._drawn = self._now()

    def trained(self) -> None:
        self._trained = self._now()

    def ended(self) -> Metrics:
        """Of the step that ends here; the next one begins."""
        ended, waited = self._now(), self._drawn.since(self._begun)
        whole, self._begun = ended.since(self._begun), ended
        return {
            "seconds": whole.at,
            "generate_seconds": waited.at,
            "train_seconds": self._trained.at - self._drawn.at,
            "engine_seconds": whole.busy,  # in which engines were asked for anything
            "host_seconds": waited.at - waited.busy,  # in which training waited, and not for them
        }
