"""Addition task with priced expert models: `ask gold 123+45=?` costs 16, `ask red 1+2=?` costs 1 and errs more often.

The level is the largest number of digits. The environment rewards right answers only; prices belong to a reward.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import is_heldout, prompt_of, require_level
from strop.environments.single_turn import SingleTurn
from strop.environments.tools.paid_experts import Experts, able
from strop.environments.tools.tool import offered
from strop.environments.tools.toolbox import ToolboxEpisode, calling
from strop.roles import Environment
from strop.types import Message, Task

_SUMS = (1, 3, 6)  # levels of sums of numbers of one, two and three digits


@dataclass(frozen=True)
class Market(Environment):
    """Environment of sums with priced experts."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "market"
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, len(_SUMS))

    def task(self, index: int, heldout: bool = False) -> Task:
        """A sum of the same side, of any size up to the level's."""
        stream = random.Random(f"{self.name}/{self.seed}/{self.level}/{index}/{heldout}")
        inner = Arithmetic(stream.choice(_SUMS[: self.level]), self.seed).task(index, heldout)
        return Task(inner.messages, inner.answer, self.name, self.level, tools=(offered(Experts()),))

    def episode(self) -> MarketEpisode:
        return MarketEpisode(SingleTurn(self), (Experts(),))

    def check(self, task: Task, completion: str) -> float:
        return Arithmetic(1).check(task, completion)

    def answer(self, completion: str) -> str:
        return Arithmetic(1).answer(completion)

    def solution(self, task: Task) -> str:
        return task.answer


@dataclass
class MarketEpisode(ToolboxEpisode):
    """Episode whose demonstrations ask any expert that can solve the sum, whatever it costs."""

    def demonstrate(self) -> Message:
        if self.heard:
            return Message("assistant", self.heard[-1])
        question = prompt_of(self.task)
        names = able(question)
        # by the task, so that the same one is always shown the same; the side of a text is as good as a coin
        place = sum(is_heldout(f"{question}{number}") for number in range(30)) % len(names)
        return calling(self.tools[0], expert=names[place], question=question)
