"""Socratic-Zero's teacher (2509.24726): from a question and a wrong reply to it, a new question about what went wrong.

Its generator, a second model, learns to write questions of utility exp(-(s - target)^2 / (2 width^2)), s the solver's
success. Reading: that utility is here the chance that a failure is answered with a question at all, so that questions
follow from what is neither hopeless nor done; there is no second model. Constants are parameters: they were not found.
Papers: socratic-zero
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strop.control.task_generators.support.prompts import rewritten
from strop.errors import ConfigurationError
from strop.roles import Adviser, Writer
from strop.success import success, successes
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player

_RIGHT = 0.5  # an attempt that did worse is a failure


@dataclass(frozen=True)
class FromFailures(Writer):
    """For each of at most `questions` failed attempts of a group, with the utility's chance, a new question."""

    adviser: Adviser | None = None  # the teacher; None: the policy itself
    questions: int = 1  # that follow from one group
    target: float = 0.5  # success at which a task teaches most
    width: float = 0.2  # of what is worth following up around it

    def __post_init__(self) -> None:
        if self.questions < 1 or not 0 <= self.target <= 1 or self.width <= 0:
            raise ConfigurationError(
                f"FromFailures needs questions >= 1, 0 <= target <= 1 and width > 0, got {self.questions}, "
                f"{self.target} and {self.width}"
            )

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        failed = [attempt for attempt in group.own if success(attempt) < _RIGHT]
        made = []
        for attempt in failed[: self.questions]:
            if np.random.default_rng(play.another().key).random() < self.utility(group):
                made.append(await rewritten(self.adviser, "mended", group.task, play, reply=attempt.reply))
        return made

    def utility(self, group: Group) -> float:
        right, count = successes(group)
        return math.exp(-((right / count - self.target) ** 2) / (2 * self.width**2)) if count else 0.0
