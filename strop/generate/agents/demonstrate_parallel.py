"""Parallel-R1's cold start (2509.07980): demonstrations whose working is found on several paths and summed up.

Reading: the paper has traces written by a larger model; here the world's own working stands on every path.
Papers: parallel-r1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from strop.environments.parallel_format import in_parallel
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateParallel(Agent):
    """`inner` shows what the world demonstrates, its working in a block of `paths` paths."""

    inner: Agent
    paths: int = 2  # of a block

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        rewrite = partial(in_parallel, paths=self.paths)
        return await self.inner.attempt(task, dialogue, Rewritten(environment, rewrite))
