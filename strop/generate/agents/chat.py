"""Talk with the world turn by turn, tools included, until one of them ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.generate.partners import Dialogue
from strop.generate.where_it_stands import where_it_stands
from strop.roles import Agent, Environment
from strop.types import Observation, Origin, Task


@dataclass(frozen=True)
class Chat(Agent):
    """The policy replies and the world answers, at most `max_turns` times."""

    max_turns: int = 8  # of one attempt

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigurationError(f"Chat needs max_turns >= 1, got {self.max_turns}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        answers = await where_it_stands(task, dialogue, environment)
        while self._goes_on(answers) and not dialogue.is_cut:
            answers.append(await environment.step(await dialogue.reply()))
            if self._goes_on(answers):
                dialogue.hear(answers[-1].messages)
        return payments(answers)

    def _goes_on(self, answers: list[Observation]) -> bool:
        return len(answers) < self.max_turns and not (answers and answers[-1].done)


def payments(answers: list[Observation]) -> tuple[float, ...]:
    """What the world paid for each turn; empty where it never pays."""
    if all(answer.reward is None for answer in answers):
        return ()
    return tuple(answer.reward or 0.0 for answer in answers)
