"""Let the world show its solution with a plan before it (PTA-GRPO, 2510.01833): what the policy imitates at first.

Reading: the paper's plans are a larger model's summaries; here they are the steps without their results.
Papers: pta-grpo
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.environments.plans import planned
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstratePlan(Agent):
    """`inner` shows what the world demonstrates, each reply with its plan."""

    inner: Agent

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        return await self.inner.attempt(task, dialogue, Rewritten(environment, planned))
