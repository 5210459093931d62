"""First in, first out: every kept group is trained on once, in the order of admission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strop.errors import CheckpointError
from strop.roles import Buffer
from strop.types import Group


@dataclass
class Fifo(Buffer):
    """Draws the groups with the smallest admission numbers, whatever the order in which they finished.

    A checkpoint names the groups held; after `restore` those still `missing` must be added again from the ledger.
    """

    _groups: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)
    _missing: set[int] = field(default_factory=set, init=False, repr=False, compare=False)

    def add(self, group: Group) -> None:
        if group.number in self._groups:
            raise ValueError(f"group {group.number} is already in the buffer: it would be trained twice")
        self._groups[group.number] = group
        self._missing.discard(group.number)

    def draw(self, count: int, step: int) -> list[Group] | None:
        if self._missing:
            raise CheckpointError(f"the checkpoint's groups {self.missing} were not put back into the buffer")
        if len(self._groups) < count:
            return None
        drawn = [self._groups.pop(number) for number in sorted(self._groups)[:count]]
        for group in drawn:
            group.times_trained += 1
        return drawn

    @property
    def missing(self) -> list[int]:
        """Numbers of the groups a restored checkpoint held that were not added again yet."""
        return sorted(self._missing)

    def __len__(self) -> int:
        return len(self._groups)

    def state(self) -> dict[str, Any]:
        return {"numbers": sorted(self._missing.union(self._groups))}

    def restore(self, state: dict[str, Any]) -> None:
        self._groups = {}
        self._missing = {int(number) for number in state["numbers"]}
