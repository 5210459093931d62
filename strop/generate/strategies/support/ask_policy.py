"""One reply and no world: the policy is asked something (to reflect, to extract, to judge), and nobody checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class OneReply(Agent):
    """Reads what its start says in place of the task, and replies once.

    Its attempts are GUIDED: they say nothing about how hard the task is.
    """

    origin: ClassVar[Origin] = Origin.GUIDED

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if not dialogue.is_cut:
            await dialogue.reply()
        return ()
