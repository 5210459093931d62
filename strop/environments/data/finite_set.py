"""Finite task set for any number of epochs, reshuffled in each; equal prompts stay on the same side of the split."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from strop.environments.data.heldout_split import whole_prompt
from strop.errors import ConfigurationError, DataError
from strop.types import Task


@dataclass(frozen=True)
class FixedTasks:
    """Tasks of a file, split into train and held-out by the hash of the prompt."""

    origin: str  # for errors
    train: tuple[Task, ...]
    heldout: tuple[Task, ...]

    @classmethod
    def split(cls, tasks: Sequence[Task], share: float, origin: str) -> FixedTasks:
        """Put about `share` of the distinct prompts aside, and at least one of two where any share is asked for."""
        if not 0.0 <= share < 1.0:
            raise ConfigurationError(f"heldout_share must be at least 0 and less than 1, got {share}")
        if not tasks:
            raise DataError(f"{origin} holds no tasks")
        places = {whole_prompt(task): _place(whole_prompt(task)) for task in tasks}
        aside = {prompt for prompt, place in places.items() if place < share}
        if not aside and share > 0 and len(places) > 1:
            aside = {min(places, key=lambda prompt: places[prompt])}
        train = tuple(task for task in tasks if whole_prompt(task) not in aside)
        return cls(origin, train, tuple(task for task in tasks if whole_prompt(task) in aside))

    @classmethod
    def apart(cls, tasks: Sequence[Task], heldout: Sequence[Task], origin: str) -> FixedTasks:
        """Both sides as they are given; a prompt of both is held out."""
        if not tasks or not heldout:
            raise DataError(f"{origin} holds {len(tasks)} tasks to train on and {len(heldout)} to measure on")
        aside = {whole_prompt(task) for task in heldout}
        return cls(origin, tuple(task for task in tasks if whole_prompt(task) not in aside), tuple(heldout))

    def without(self, ids: frozenset[str]) -> FixedTasks:
        """The same, less some tasks; nobody changes sides."""
        train, heldout = (tuple(t for t in side if t.id not in ids) for side in (self.train, self.heldout))
        return replace(self, train=train, heldout=heldout)

    def num_tasks(self, heldout: bool) -> int:
        """How many different tasks one side has."""
        return len(self.heldout if heldout else self.train)

    def task(self, index: int, heldout: bool) -> Task:
        """Task number `index` of an endless stream that meets every task once per epoch."""
        tasks = self.heldout if heldout else self.train
        if not tasks:
            side = "held-out" if heldout else "train"
            raise DataError(f"{self.origin} leaves no {side} tasks out of {len(self.train) + len(self.heldout)}")
        epoch, place = divmod(index, len(tasks))
        return tasks[_order(epoch, len(tasks))[place]]


@lru_cache(maxsize=4)
def _order(epoch: int, count: int) -> list[int]:
    """An epoch's order; the same wherever the file lies."""
    order = list(range(count))
    random.Random(f"{epoch}/{count}").shuffle(order)
    return order


def _place(prompt: str) -> float:
    """Where a prompt falls between 0 and 1; the same in every file and order."""
    return int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:7], "big") / 2**56
