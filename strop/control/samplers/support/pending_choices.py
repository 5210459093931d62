"""Pending state of samplers: chosen tasks without outcomes yet, and updates queued until the next weight version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.types import Group

# Evidence that waits until a sampler chooses again.


@dataclass
class Filed:
    """Queued rows of numbers; taken in the order of version and admission, not of completion time."""

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


# Tasks that were chosen together and wait to be tried.


@dataclass
class PendingChoices:
    """Pool indices chosen for one weight version; chosen anew when weights change or all were tried."""

    step: int = -1
    choices: int = 0  # made so far: the key of what is decided at random in the next one
    places: list[int] = field(default_factory=list)  # in the order in which they are tried

    def next(self, step: int, choose: Callable[[int], Sequence[int]]) -> int:
        """The next place; `choose` is asked for more with the number of the choice."""
        if step != self.step or not self.places:
            self.places, self.step = [int(place) for place in choose(self.choices)], step
            self.choices += 1
        return self.places.pop(0)

    def state(self) -> dict[str, Any]:
        return {"step": self.step, "choices": self.choices, "places": list(self.places)}

    def restore(self, state: dict[str, Any]) -> None:
        self.step, self.choices = int(state["step"]), int(state["choices"])
        self.places = [int(place) for place in state["places"]]
