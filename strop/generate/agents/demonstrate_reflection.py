"""Satori's format (2502.02508), shown: the environment's own completion, with a marker in its middle that asks to look
it over.

Reading: of the paper's three meta actions only the one that restarts use; what follows is the right completion going
    on.
Papers: satori
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.roles import Agent, Dialogue, Episode
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateReflection(Agent):
    """`inner` shows what the environment demonstrates, with `reflect` before one of its steps, which is left to
    probability.
    """

    inner: Agent
    reflect: str = "?"
    separator: str = " "  # between two steps

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewrite = partial(self.marked, key=dialogue.key)
        return await self.inner.rollout(task, dialogue, Rewritten(episode, rewrite))

    def marked(self, text: str, key: int) -> str:
        parts = text.split(self.separator)
        at = int(np.random.default_rng(key).integers(len(parts)))
        return self.separator.join([*parts[:at], self.reflect + parts[at], *parts[at + 1 :]])
