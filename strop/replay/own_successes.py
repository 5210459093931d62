"""SPEAR's memory (2509.22601): attempts that were better than their siblings wait until they are many, then come again.

Reading: better is a reward above the mean of the group, which is a positive advantage without division. All that wait
are drawn at once, as groups of their own, and none a third time; before that they are forgotten when they grow too old.
They are spread over the draw, so that each of its optimizer steps has its part of the new and of the old.
Papers: spear
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from strop.errors import ConfigurationError
from strop.replay.memory.held_groups import Replaying
from strop.types import Group, Trajectory


@dataclass
class OwnSuccesses(Replaying):
    """New groups once, the oldest first; on top, once `size` better attempts wait, all of them."""

    size: int = 128  # attempts that are drawn again together
    age: int = 10  # versions after which one that waits is forgotten

    def __post_init__(self) -> None:
        if self.size < 1 or self.age < 1:
            raise ConfigurationError(f"OwnSuccesses needs size >= 1 and age >= 1, got {self.size} and {self.age}")

    def draw(self, count: int, step: int) -> list[Group] | None:
        held = self._held
        if len(held) < count:
            return None
        held.old = {number: group for number, group in held.old.items() if step - group.version <= self.age}
        waiting = [held.old[number] for number in sorted(held.old)]
        again = waiting if sum(len(_better(group)) for group in waiting) >= self.size else []
        fresh = held.take(count, again)
        done = {group.number for group in again} | {group.number for group in fresh if not _better(group)}
        held.old = {number: group for number, group in held.old.items() if number not in done}
        return _spread(fresh, [replace(group, trajectories=_better(group)) for group in again])


def _spread(new: list[Group], again: list[Group]) -> list[Group]:
    """Both in their order, and any stretch of the draw has about the same share of each."""
    places = [(place / len(groups), group) for groups in (new, again) for place, group in enumerate(groups)]
    return [group for _, group in sorted(places, key=lambda each: each[0])]


def _better(group: Group) -> list[Trajectory]:
    return [attempt for attempt in group.own if attempt.reward > group.rewards.mean()]
