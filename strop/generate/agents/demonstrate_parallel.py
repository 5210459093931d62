"""Parallel-R1's cold start (2509.07980): demonstrations whose working is found on several paths and summed up.

Reading: the paper has traces written by a larger model; here the world's own working stands on every path.
Papers: parallel-r1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.abilities import Demonstrates
from strop.environments.parallel_format import in_parallel
from strop.errors import ConfigurationError
from strop.generate.partners import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateParallel(Agent):
    """The world's demonstration in one reply, its working in a block of `paths` paths."""

    paths: int = 2  # of a block

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if not isinstance(environment, Demonstrates):
            raise ConfigurationError(
                f"{type(environment).__name__} has no demonstrate(), so nothing can be shown in it"
            )
        await environment.reset(task)
        shown = environment.demonstrate()
        told = replace(shown, content=in_parallel(shown.content, self.paths))
        dialogue.say(told)
        answer = await environment.step(told)
        return () if answer.reward is None else (answer.reward,)
