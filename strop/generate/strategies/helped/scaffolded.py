"""RuscaRL's scaffold (2508.16949): siblings read more or less of the rubric, ever less of it, and train without it.

Readings: the first of n siblings reads most, the last nothing. Items are drawn by chance and keep their order. They
stand behind the question; the paper has them in the system prompt. Where nobody writes a rubric, attempts are plain.
Papers: ruscarl
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from strop.concurrency import together
from strop.errors import AdviserError, ConfigurationError
from strop.filter.judges.checklist_items import Item
from strop.filter.judges.rubric import rubric_of
from strop.generate.interfaces import Player
from strop.roles import Adviser, Strategy
from strop.types import Group, Message, Metrics, Origin, Start, Task, Trajectory

if TYPE_CHECKING:
    from strop.run import Run

SCAFFOLD = "scaffold"  # the fact of what share of the rubric an attempt was shown
_LARGEST = 700.0  # exponent


@dataclass(frozen=True)
class Scaffolded(Strategy):
    """Sibling i of n is shown round(share * items), share = (n - 1 - i) / (n - 1) / (1 + exp(steepness * (x - fall))).

    x is how much of the run is over, from 0 to 1.
    """

    writer: Adviser  # who writes rubrics, the same as the reward's
    steps: int  # of the run
    fall: float = 0.2  # where half of the scaffold is gone, as a share of the run
    steepness: float = 125.0  # of the fall
    shows: str = "{question} hint: {items}"  # what is read

    def __post_init__(self) -> None:
        if self.steps < 1 or "{question}" not in self.shows or "{items}" not in self.shows:
            raise ConfigurationError(
                f"Scaffolded needs steps >= 1 and {{question}} and {{items}} in shows, got {self.steps}, {self.shows!r}"
            )

    def problems(self, run: Run) -> list[str]:
        few = run.budget.size is not None and run.budget.size < 2
        return ["siblings are shown different shares of a rubric: need group_size >= 2, got 1"] if few else []

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        try:
            items = await rubric_of(group.task, self.writer)
        except AdviserError:
            items = []
        counts = [
            round(self.share(index, len(starts), start.version) * len(items)) for index, start in enumerate(starts)
        ]
        played = zip(starts, counts, strict=True)
        return await together(
            self._attempt(start, group.task, _drawn(items, count, start), play) for start, count in played
        )

    def share(self, index: int, size: int, version: int) -> float:
        """Of the rubric, for this sibling."""
        over = version / max(self.steps - 1, 1)
        faded = 1 / (1 + math.exp(min(self.steepness * (over - self.fall), _LARGEST)))
        return (size - 1 - index) / max(size - 1, 1) * faded

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The mean share of the rubric that attempts were shown."""
        shown = [attempt.facts.get(SCAFFOLD, 0.0) for group in groups for attempt in group.scored]
        return {"scaffold_share": sum(shown) / max(len(shown), 1)}

    async def _attempt(self, start: Start, task: Task, items: tuple[list[str], float], play: Player) -> Trajectory:
        shown, share = items
        if not shown:
            return await play(start)
        attempt = await play(replace(start, messages=self._told(task, shown), origin=Origin.GUIDED))
        told = play.retold(attempt, task.messages) if attempt.turns else attempt
        return replace(told, facts=told.facts | {SCAFFOLD: share})

    def _told(self, task: Task, items: list[str]) -> tuple[Message, ...]:
        *before, last = task.messages
        text = self.shows.replace("{question}", last.content).replace("{items}", " ".join(items))
        return (*before, replace(last, content=text))


def _drawn(items: Sequence[Item], count: int, start: Start) -> tuple[list[str], float]:
    """So many items by chance, in their order, and what share they are."""
    places = np.random.default_rng(start.key).permutation(len(items))[:count]
    return [items[place].text for place in sorted(places.tolist())], count / max(len(items), 1)
