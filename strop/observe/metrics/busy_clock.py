"""How long engines had anything to do: seconds in which at least one request was open."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType


@dataclass
class BusyClock:
    """A request stands inside `with`; any number may at once, of one thread."""

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
