"""What extractor and manager of a memory should say (Memory-R2), to be imitated.

Papers: memory-r2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.sessions import extractor_reads, facts_in, listed, manager_reads, split_message
from strop.environments.format.demonstrations import demonstrating
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class DemonstrateMemory(Agent):
    """The facts of each session, the last of each key; and the memory with them in it."""

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        shown = demonstrating(environment)
        await environment.reset(task)
        content, paid = task.messages[-1].content, list[float]()
        while True:
            memory, session = split_message(content)
            new = listed(facts_in(session))
            dialogue.restart(extractor_reads(session), "extractor")
            dialogue.say(Message("assistant", new))
            dialogue.restart(manager_reads(memory, new), "manager")
            managed = shown.demonstrate()
            dialogue.say(managed)
            answer = await environment.step(managed)
            paid += [0.0, answer.reward or 0.0]
            if answer.done:
                return tuple(paid)
            content = answer.messages[-1].content
