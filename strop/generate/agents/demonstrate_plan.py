"""Let the world show its solution with a plan before it (PTA-GRPO, 2510.01833): what the policy imitates at first.

Reading: the paper's plans are a larger model's summaries; here they are the steps without their results.
Papers: pta-grpo
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.abilities import Demonstrates
from strop.environments.plans import planned
from strop.errors import ConfigurationError
from strop.generate.partners import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstratePlan(Agent):
    """The world's demonstration of one reply, with its plan."""

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if not isinstance(environment, Demonstrates):
            raise ConfigurationError(
                f"{type(environment).__name__} has no demonstrate(), so nothing can be shown in it"
            )
        await environment.reset(task)
        shown = environment.demonstrate()
        message = replace(shown, content=planned(shown.content))
        dialogue.say(message)
        paid = (await environment.step(message)).reward
        return () if paid is None else (paid,)
