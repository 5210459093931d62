"""TON's dropout of thoughts (2505.16854): of some demonstrations the working is left out and its tags stay, empty.

Reading: which ones, the task's name decides, so that a task is shown the same way each time.
Papers: ton
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN, final_answer
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Group, Metrics, Origin, Task

_PLACES = 2**32


@dataclass(frozen=True)
class ThoughtDropout(Agent):
    """`inner` shows what the world demonstrates, without working at a share of the tasks.

    Every answer has tags, or nobody could learn to leave a thought empty.
    """

    inner: Agent
    share: float = 0.5  # of tasks whose working is left out
    seed: int = 0  # of the choice

    origin: ClassVar[Origin] = Origin.TEACHER

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigurationError(f"ThoughtDropout needs 0 <= share <= 1, got {self.share}")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        rewrite = _emptied if self.is_dropped(task) else _tagged
        return await self.inner.attempt(task, dialogue, Rewritten(environment, rewrite))

    def is_dropped(self, task: Task) -> bool:
        name = hashlib.sha256(f"{self.seed}/{task.id}".encode()).digest()
        return int.from_bytes(name[:4], "big") < self.share * _PLACES

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How many tasks of the draw were shown without a thought."""
        dropped = [self.is_dropped(group.task) for group in groups]
        return {"dropped_share": sum(dropped) / max(len(dropped), 1)}


def _emptied(reply: str) -> str:
    return f"{OPEN}{CLOSE}{final_answer(reply)}"


def _tagged(reply: str) -> str:
    return reply if OPEN in reply else _emptied(reply)
