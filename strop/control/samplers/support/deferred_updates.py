"""Evidence that waits until a sampler chooses again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from strop.types import Group


@dataclass
class Filed:
    """Rows of numbers; taken in the order of version and admission, whichever group was done first."""

    rows: list[list[float]] = field(default_factory=list)  # version, number, then what was seen

    def add(self, group: Group, *seen: float) -> None:
        self.rows.append([group.version, group.number, *seen])

    def take(self) -> list[list[float]]:
        """All of them, once."""
        rows, self.rows = sorted(self.rows), []
        return rows

    def state(self) -> list[list[float]]:
        return [list(row) for row in self.rows]

    def restore(self, rows: Iterable[Iterable[float]]) -> None:
        self.rows = [list(row) for row in rows]
