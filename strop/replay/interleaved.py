"""ReLIFT's buffer (2506.07527): demonstrations wait until there are enough for an optimizer step of their own.

Reading: the newest are taken first, as released, so that older ones may never be. A demonstration waits at least until
the rollouts of its group were sampled, so that supervised steps follow those of reinforcement learning.
Papers: relift
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strop.errors import ConfigurationError
from strop.roles import Buffer
from strop.types import Group, Metrics, Origin, Rollout


@dataclass
class Interleaved(Buffer):
    """Batches of `inner` without demonstrations; those of `size` groups are added once there are so many."""

    inner: Buffer
    size: int = 128  # demonstrations of one supervised step
    _shown: dict[int, Group] = field(default_factory=dict, init=False, repr=False, compare=False)  # and not yet drawn

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigurationError(f"Interleaved needs a size >= 1, got {self.size}")

    @property
    def capacity(self) -> int | None:
        return self.inner.capacity

    def add(self, group: Group) -> None:
        self.inner.add(group)

    def sample(self, count: int, step: int) -> list[Group] | None:
        drawn = self.inner.sample(count, step)
        if drawn is None:
            return None
        for group in drawn:
            if shown := _of_teacher(group):
                self._shown[group.number] = replace(group, rollouts=shown)
        return [*(_without_teacher(group) for group in drawn), *self._taken()]

    def __len__(self) -> int:
        return len(self.inner)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many demonstrations were in this batch, and how many are still to come."""
        taught = sum(len(_of_teacher(group)) for group in groups)
        return {"demonstrations": float(taught), "demonstrations_waiting": float(len(self._shown))}

    def state(self) -> dict[str, Any]:
        return {"shown": sorted(self._shown)}

    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None:
        groups = {number: group_of(number) for number in map(int, state["shown"])}
        self._shown = {number: replace(group, rollouts=_of_teacher(group)) for number, group in groups.items()}

    def _taken(self) -> list[Group]:
        if len(self._shown) < self.size:
            return []
        return [self._shown.pop(number) for number in sorted(self._shown, reverse=True)[: self.size]]


def _of_teacher(group: Group) -> list[Rollout]:
    return [rollout for rollout in group.scored if rollout.origin is Origin.TEACHER]


def _without_teacher(group: Group) -> Group:
    own = [rollout for rollout in group.rollouts if rollout.origin is not Origin.TEACHER]
    return group if len(own) == len(group.rollouts) else replace(group, rollouts=own)
