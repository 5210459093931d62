"""What failed rollouts lack and successful ones do not: capabilities by how far both are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Shortfalls:
    """Counts of failed and of successful rollouts, and of those among them that lack each capability."""

    seen: list[int] = field(default_factory=lambda: [0, 0])
    lacking: dict[str, list[int]] = field(default_factory=dict)

    def joined(self, labels: Sequence[tuple[bool, Sequence[str]]]) -> Shortfalls:
        """The same with further rollouts: whether each was successful, and what it lacks."""
        found = Shortfalls(**self.state())
        for is_successful, names in labels:
            found.seen[is_successful] += 1
            for name in names:
                found.lacking.setdefault(name, [0, 0])[is_successful] += 1
        return found

    def gap(self, name: str) -> float:
        """The share of failed rollouts that lack it, less that of successful ones; of none, the share is 0."""
        counts = zip(self.lacking.get(name, [0, 0]), self.seen, strict=True)
        failed, successful = (lack / seen if seen else 0.0 for lack, seen in counts)
        return failed - successful

    def ranked(self) -> list[str]:
        """Those whose gap is above 0, the widest first; equal ones in the order of letters."""
        found = [name for name in self.lacking if self.gap(name) > 0]
        return sorted(found, key=lambda name: (-self.gap(name), name))

    def state(self) -> dict[str, Any]:
        return {"seen": list(self.seen), "lacking": {name: list(counts) for name, counts in self.lacking.items()}}
