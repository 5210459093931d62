"""Attempts that read an instruction before the question, in training and wherever the policy is measured.

Papers: hir
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.strategies.support.prompt_word import worded
from strop.roles import Strategy
from strop.types import Group, Start, Trajectory


@dataclass(frozen=True)
class Instructed(Strategy):
    """Independent attempts; the instruction is no help, but how this policy is asked: they are its own."""

    word: str  # before the question

    def __post_init__(self) -> None:
        if not self.word:
            raise ConfigurationError("Instructed needs a word, got an empty one")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        messages = worded(group.task, self.word)
        return await together(play(replace(start, messages=messages)) for start in starts)
