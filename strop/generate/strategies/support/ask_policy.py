"""One completion and no environment: the policy is asked something (to reflect, to extract, to judge), and nobody
checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class OneCompletion(Agent):
    """Reads what its start says in place of the task, and completions once.

    Its rollouts are GUIDED: they say nothing about how hard the task is.
    """

    origin: ClassVar[Origin] = Origin.GUIDED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        if not dialogue.is_cut:
            await dialogue.completion()
        return ()
