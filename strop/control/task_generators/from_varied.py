"""DreamGym's curriculum (2511.03773): tasks that the policy solves at times are made harder.

Papers: dreamgym
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strop.control.task_generators.support.prompts import rewritten
from strop.errors import ConfigurationError
from strop.roles import Adviser, Writer
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.generate.interfaces import Player


@dataclass(frozen=True)
class FromVaried(Writer):
    """One harder task from each whose rewards have a variance of at least `least`; those without any are no seeds."""

    adviser: Adviser | None = None  # who writes; None: the policy itself
    least: float = 0.1  # variance of the rewards of a seed; 0.25 is the largest of rewards from 0 to 1

    def __post_init__(self) -> None:
        if not 0 < self.least <= 0.25:
            raise ConfigurationError(f"FromVaried needs 0 < least <= 0.25, got {self.least}")

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if variance(group) < self.least:
            return []
        return [await rewritten(self.adviser, "harder", group.task, play)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much the outcome of a task varies."""
        return {"task_variance": float(np.mean([variance(group) for group in groups]))} if groups else {}


def variance(group: Group) -> float:
    """(1/n) * sum of (r - mean r)^2 over the policy's own attempts; 0 without any."""
    rewards = [attempt.reward for attempt in group.own]
    return float(np.var(rewards)) if rewards else 0.0
