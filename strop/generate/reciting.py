"""What somebody else replied, said in the policy's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class Reciting(Agent):
    """Says the replies one after the other, as far as the world goes on; with an end behind each."""

    replies: tuple[str, ...]

    origin: ClassVar[Origin] = Origin.GUIDED

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        await environment.reset(task)
        paid: list[float | None] = []
        for reply in self.replies:
            if dialogue.is_cut:
                break
            dialogue.say(Message("assistant", reply))
            answer = await environment.step(Message("assistant", reply))
            paid.append(answer.reward)
            if answer.done:
                break
            dialogue.hear(answer.messages)
        return tuple(reward or 0.0 for reward in paid) if any(reward is not None for reward in paid) else ()
