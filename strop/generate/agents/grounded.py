"""SPA-RL's grounding signal (2505.20732): a turn whose action the world carried out is paid, a refused one is not.

Papers: spa-rl
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Observation, Origin, Task


@dataclass(frozen=True)
class Grounded(Agent):
    """Lets `inner` talk, and pays `bonus` per turn instead of what the world pays.

    The world refused a turn if an answer begins with `refusal`; the last turn counts as carried out. What the attempt
    was worth is another reward's question (`LastReply`).
    """

    inner: Agent
    bonus: float = 0.5  # of a turn that the world carried out
    refusal: str = "error"  # how an answer begins that refuses a turn

    origin: ClassVar[Origin] = Origin.POLICY

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        watched = _Watched(environment)
        await self.inner.attempt(task, dialogue, watched)
        count = len(watched.answers)
        return tuple(self._paid(answer, index == count - 1) for index, answer in enumerate(watched.answers))

    def _paid(self, answer: Observation, is_last: bool) -> float:
        is_refused = any(message.content.startswith(self.refusal) for message in answer.messages)
        return self.bonus if is_last or not is_refused else 0.0


@dataclass
class _Watched:
    """An environment whose answers are remembered."""

    inner: Environment
    answers: list[Observation] = field(default_factory=list)

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, reply: Message) -> Observation:
        self.answers.append(await self.inner.step(reply))
        return self.answers[-1]

    async def close(self) -> None:
        await self.inner.close()
