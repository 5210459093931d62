"""New groups and groups that were trained on: the state of every buffer with sample reuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from strop.roles import Buffer
from strop.types import Group


@dataclass
class Held:
    """Length counts only new groups: old ones do not wait for training, and an admission must not count them.

    A group that is new has never been trained on, so that `times_trained` says on which side it stands.
    """

    new: dict[int, Group] = field(default_factory=dict)
    old: dict[int, Group] = field(default_factory=dict)

    def add(self, group: Group) -> None:
        if group.number in self.new or group.number in self.old:
            raise ValueError(f"group {group.number} is already in the buffer")
        self.new[group.number] = group

    def take(self, count: int, again: Iterable[Group] = ()) -> list[Group]:
        """The new groups that were admitted first, old from now on; they and those `again` are trained once more."""
        taken = [self.new.pop(number) for number in sorted(self.new)[:count]]
        self.old |= {group.number: group for group in taken}
        for group in (*taken, *again):
            group.times_trained += 1
        return taken

    def forget(self, most: int) -> None:
        """All but the newest `most` of the old ones."""
        for number in sorted(self.old)[: max(len(self.old) - most, 0)]:
            del self.old[number]

    def __len__(self) -> int:
        return len(self.new)

    def state(self) -> dict[str, Any]:
        held = {**self.old, **self.new}
        return {"times_trained": {str(number): held[number].times_trained for number in sorted(held)}}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self.new, self.old = {}, {}
        for number, times in state["times_trained"].items():
            group = group_of(int(number))
            group.times_trained = int(times)
            (self.old if group.times_trained else self.new)[group.number] = group


@dataclass
class Replaying(Buffer):
    """Buffer with old groups; which of them are sampled again is left to subclasses."""

    _held: Held = field(default_factory=Held, init=False, repr=False, compare=False)

    def add(self, group: Group) -> None:
        self._held.add(group)

    def __len__(self) -> int:
        return len(self._held)

    def state(self) -> dict[str, Any]:
        return self._held.state()

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        self._held.restore(state, group_of)
