"""SPEAR's pay for exploring (2509.22601): a little for every use of a tool, less and less, and then nothing.

Reading: uses that the world answered count, failed ones too.
Papers: spear
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group, Trajectory

_EACH = 0.1  # for one use; ten of them are paid in full


@dataclass(frozen=True)
class ToolCalls(Reward):
    """fade * min(1, uses / 10), with fade = (1 + cos(pi t / fall)) / 2 at version t of the group, 0 from `fall` on."""

    fall: int = 200  # versions over which the pay goes from 1 to 0
    weight: float = 1.0  # of this reward beside others

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "tool_calls"

    def __post_init__(self) -> None:
        if self.fall < 1:
            raise ConfigurationError(f"ToolCalls needs fall >= 1, got {self.fall}")

    def fade(self, version: int) -> float:
        return (1 + math.cos(math.pi * min(version / self.fall, 1.0))) / 2

    def __call__(self, group: Group) -> list[float]:
        return [self.fade(group.version) * min(1.0, _EACH * uses(attempt)) for attempt in group.trajectories]


def uses(attempt: Trajectory) -> int:
    """Answers of tools that were read."""
    return sum(message.role == "tool" for turn in attempt.turns for message in turn.told)
