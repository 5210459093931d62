"""SAPO's mixture (2509.08721): of every few groups some are the node's own, the others were shared by its peers.

Readings: the paper's draw, uniform among shared groups whose attempts this node's own worlds judge unevenly, each
taken once as long as there are others. Where nothing is shared an own task takes the place: nobody is waited for. Tasks
of worlds that this node does not have, and of the held-out side, are passed over.
Papers: sapo
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from strop.control.sharing import FOREIGN, SharedGroup, published, read
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.environments.data.lookup import world_of
from strop.errors import ConfigurationError
from strop.roles import Belief, Sampler, World
from strop.types import Task
from strop.workers.foreign_checks import checked


@dataclass
class SharedTasks(Sampler):
    """`own` tasks of `inner`, then `foreign` ones out of `folder`, and so on; chance is keyed by the draw's number."""

    inner: Sampler
    worlds: tuple[World, ...]
    folder: str  # where nodes share
    node: str = ""  # whose groups are this node's own; empty: it shares nothing
    own: int = 4  # groups of each round
    foreign: int = 4  # groups of each round that others made
    size: int = 8  # attempts of a foreign group that count: the first ones, as many as are said again
    seed: int = 0
    _num_drawn: int = field(default=0, init=False, repr=False, compare=False)
    _taken: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _useless: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.own < 0 or self.foreign < 0 or self.own + self.foreign < 1:
            raise ConfigurationError(f"SharedTasks needs own and foreign >= 0, and one of them, got {self}")

    def next(self, step: int, belief: Belief) -> Task:
        place = self._num_drawn % (self.own + self.foreign)
        self._num_drawn += 1
        found = self._shared() if place >= self.own else None
        return self.inner.next(step, belief) if found is None else found

    def _shared(self) -> Task | None:
        """Any that was not taken; where none of those will do, all may be taken again."""
        names = published(Path(self.folder), self.node)
        for left in ([name for name in names if name not in self._taken], names):
            for place in np.random.default_rng([self.seed, self._num_drawn]).permutation(len(left)):
                if (group := self._useful(left[place])) is not None:
                    self._taken = {left[place]} if left is names else {*self._taken, left[place]}
                    return replace(group.task, id=f"{FOREIGN}{left[place]}")
        return None

    def _useful(self, name: str) -> SharedGroup | None:
        """What is known to be useless is not read again; that changes no choice, so no checkpoint holds it."""
        group = None if name in self._useless else read(Path(self.folder), name)
        if group is None or not self._is_uneven(group):
            self._useless.add(name)
            return None
        return group

    def _is_uneven(self, group: SharedGroup) -> bool:
        """Whether this node's own judgement of the attempts differs; where a world plays on, their last words'."""
        try:
            world = world_of(self.worlds, group.task)
        except ConfigurationError:
            return False
        if is_heldout(prompt_of(group.task)):
            return False
        return len({checked(world, group.task, attempt[-1]) for attempt in group.replies[: self.size]}) > 1

    def state(self) -> dict[str, Any]:
        return {"num_drawn": self._num_drawn, "taken": sorted(self._taken)}

    def restore(self, state: dict[str, Any]) -> None:
        self._num_drawn, self._taken = int(state["num_drawn"]), set(state["taken"])
