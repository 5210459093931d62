"""CLPO's rewrites (2509.25004): hard tasks in simpler words, those of medium difficulty in others; the answer stays.

Whoever rewrites is shown the answer, as in the release, so what says it is refused
(`control/task_generators/support/validation.py`). A rewrite is
not rewritten again, and is tried in a later draw than its parent, where the release has both in one.
Papers: clpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strop.control.task_generators.support.prompts import advice
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.roles import Adviser, Writer
from strop.stats.task_lineage import child, is_written
from strop.success import successes
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


@dataclass(frozen=True)
class Reworded(Writer):
    """One rewrite of each task that at most `medium` of its attempts solved; simpler where at most `hard` did."""

    adviser: Adviser | None = None  # who rewrites; None: the policy itself
    hard: float = 0.3  # success of a task up to which a simpler one is asked for
    medium: float = 0.7  # success up to which another wording is asked for; above, none

    def __post_init__(self) -> None:
        if not 0 <= self.hard <= self.medium <= 1:
            raise ConfigurationError(f"Reworded needs 0 <= hard <= medium <= 1, got {self.hard} and {self.medium}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        right, count = successes(group)
        if is_written(group.task) or not count or right > self.medium * count:
            return []
        wanted = "simpler" if right <= self.hard * count else "reworded"
        said = await advice(self.adviser, wanted, play, task=prompt_of(group.task), answer=group.task.answer)
        return [child(group.task, said.get("task", ""), group.task.answer)]
