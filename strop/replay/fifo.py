"""FIFO buffer: every kept group is trained on once, in the order of admission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from strop.roles import Buffer
from strop.types import Group


@dataclass
class Fifo(Buffer):
    """Samples the groups with the smallest admission numbers, whatever the order in which they finished."""

    _groups: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)

    def add(self, group: Group) -> None:
        if group.number in self._groups:
            raise ValueError(f"group {group.number} is already in the buffer: it would be trained twice")
        self._groups[group.number] = group

    def sample(self, count: int, step: int) -> list[Group] | None:
        if len(self._groups) < count:
            return None
        drawn = [self._groups.pop(number) for number in sorted(self._groups)[:count]]
        for group in drawn:
            group.times_trained += 1
        return drawn

    def __len__(self) -> int:
        return len(self._groups)

    def state(self) -> dict[str, Any]:
        return {"numbers": sorted(self._groups)}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self._groups = {number: group_of(number) for number in map(int, state["numbers"])}
