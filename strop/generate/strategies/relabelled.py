"""HIR's pairs (2302.05206): what was written, behind the instruction it was asked with and behind the opposite one.

Which of both it satisfied is known once it is scored; the loss `Hindsight` trains that one and sets it against the
other.
Papers: hir
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.strategies.support.prompt_word import worded
from strop.generate.strategies.support.rollout_twins import twin
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class Relabelled(Strategy):
    """The attempts of `inner`, each with a twin that reads `opposite` before the question; a pair is a family."""

    inner: Strategy  # asks with the other instruction
    opposite: str  # what a wrong attempt satisfies

    def __post_init__(self) -> None:
        if not self.opposite:
            raise ConfigurationError("Relabelled needs an opposite instruction, got an empty one")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        attempts = await self.inner(group, starts, play)
        for attempt in attempts:
            attempt.family = attempt.id
        messages = worded(group.task, self.opposite)
        return [*attempts, *(twin(each, messages, play) for each in attempts if each.is_scored and each.turns)]
