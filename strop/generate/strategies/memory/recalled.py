"""Attempts that read what a library holds, and add nothing to it: how a memory that was filled in training is measured.

No held-out task can leave anything in it, because nothing here writes.
Papers: core
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strop.concurrency import together
from strop.generate.memory.inject import fitting, useful, with_help
from strop.generate.memory.store import Library
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


@dataclass
class Recalled(Strategy):
    """Every attempt reads the `shown` lessons of one shelf that are nearest to the task and were most useful."""

    library: Library
    shelf: str
    shown: int = 2  # lessons before a task
    longest: int = 200  # characters of all that stands before a task

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        lessons = useful(self.library.foreseen(), group.task, self.shelf, self.shown)
        texts = fitting([lesson.text for lesson in lessons], self.longest)
        return await together(play(with_help(start, group.task, texts)) for start in starts)
