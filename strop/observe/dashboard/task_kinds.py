"""Kinds of a run's tasks, read incrementally."""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.storage.ledger.browser import LedgerBrowser


@dataclass
class TaskKinds:
    """Sources and levels by name."""

    _row: int = 0  # the last task that was looked at
    _found: dict[str, tuple[str, int]] = field(default_factory=dict)

    def look(self, ledger: LedgerBrowser) -> dict[str, tuple[str, int]]:
        new, self._row = ledger.kinds(self._row)
        self._found |= {f"{source} level {level}": (source, level) for source, level in new}
        return dict(sorted(self._found.items(), key=lambda item: item[1]))
