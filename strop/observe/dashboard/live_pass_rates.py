"""Incremental pass rates of a growing run: each group is read when it settles, and again when it is first trained
on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from strop.observe.metrics.pass_rates import Cells, Count, LessonKind, Lessons
from strop.storage.ledger.browser import GroupTried, LedgerBrowser

_AT_ONCE = 500  # groups of one question
_SECONDS = 0.15  # of one look: a long history is caught up with in several


@dataclass
class LiveLessons:
    """Sums, and the cursors behind which nothing has been read."""

    lessons: Lessons = field(default_factory=Lessons)
    number: int = -1  # the last group that was looked at
    step: int = 0  # the last one whose groups are known as trained
    last: int = -1  # number of all that there are
    _running: set[int] = field(default_factory=set)
    _trained: set[int] = field(default_factory=set)

    @property
    def is_behind(self) -> bool:
        return self.number < self.last

    def look(self, ledger: LedgerBrowser) -> str:
        """Read on for a moment; the cursor is another one whenever there was anything."""
        until = time.perf_counter() + _SECONDS
        self.last = ledger.last_number()
        self._settle(ledger.tried_again(sorted(self._running)))
        while self.is_behind:
            found = ledger.tried(self.number, _AT_ONCE)
            self.number = found[-1].number
            self._running |= {each.number for each in found}
            self._settle(found)
            if time.perf_counter() > until:
                break
        if not self.is_behind:
            self._train(ledger)
        return f"{self.number}:{self.step}:{len(self._running)}"

    def _settle(self, found: Sequence[GroupTried]) -> None:
        """Count what is no longer running; of groups already trained also that."""
        for each in found:
            if each.fate == "running":
                continue
            self._running.discard(each.number)
            if each.rollouts:
                _add(self.lessons.offered, each)
            if each.fate == "trained":
                self._trained.add(each.number)
                _add(self.lessons.trained, each)

    def _train(self, ledger: LedgerBrowser) -> None:
        """Groups that waited when they were read, and were drawn since."""
        found = ledger.trained_after(self.step)
        new = sorted({number for _, number in found} - self._trained - self._running)
        for each in ledger.tried_again(new):
            self._trained.add(each.number)
            _add(self.lessons.trained, each)
        self.step = found[-1][0] if found else self.step


def _add(cells: Cells, group: GroupTried) -> None:
    cells[LessonKind(group.source, group.level), group.version] += Count(1, group.right, group.tried)
