"""Tasks that were chosen together and wait to be tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Hand:
    """Places chosen for one version of the weights; chosen anew when weights moved or all of them were tried."""

    step: int = -1
    choices: int = 0  # made so far: the key of what probability decides in the next one
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
