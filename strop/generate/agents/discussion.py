"""CoMAS's discussion (2510.08529): in each round one agent solves and another looks for flaws in the solution.

Papers: comas
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class Discussion(Agent):
    """`agents` voices of one policy; who speaks next is drawn uniformly, and every word has a context of its own.

    Turns alternate: a solution, then an evaluation of it. Both read what was said in the last `history` rounds; how
    they were scored is in no history. The world hears the last solution.
    """

    agents: int = 4  # voices
    rounds: int = 8  # of an attempt: two for each agent
    history: int = 2  # rounds that are read

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.agents < 1 or self.rounds < 1 or self.history < 0:
            raise ConfigurationError(
                f"Discussion needs agents >= 1, rounds >= 1 and history >= 0, got {self.agents}, {self.rounds} and "
                f"{self.history}"
            )

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "Discussion begins at the beginning: use a strategy that does not go on from a middle"
            )
        await environment.reset(task)
        stream, said = random.Random(dialogue.key), list[Message]()
        while len(said) < 2 * self.rounds:
            read = self._read(task, said)
            talk = dialogue.aside(read, f"agent {stream.randrange(self.agents)}")
            if talk.is_cut:
                break  # what was said does not fit into a context any more
            said.append(await talk.reply())
        solutions = said[0::2]
        paid = (await environment.step(solutions[-1])).reward if solutions else None
        return () if paid is None else (*[0.0] * (len(said) - 1), paid)

    def _read(self, task: Task, said: list[Message]) -> tuple[Message, ...]:
        """The task with the last rounds behind its question; an evaluation also reads the solution it is about."""
        count = 2 * self.history + len(said) % 2
        words = " ".join(_plain(each) for each in said[len(said) - min(count, len(said)) :])
        *before, question = task.messages
        told = f"{question.content} hint: {words}" if words else question.content
        return (*before, replace(question, content=told))


def _plain(message: Message) -> str:
    return message.content.replace(OPEN, " ").replace(CLOSE, " ").strip()
