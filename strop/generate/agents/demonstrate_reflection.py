"""Demonstrations with a reflection marker before a random step (Satori, 2502.02508).

Reading: of the paper's three meta actions, only the one that restarts use; the correct completion continues after it.
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
    """Agent `inner` on the environment's demonstration, with the text `reflect` inserted before a random step."""

    inner: Agent
    reflect: str = "?"
    separator: str = " "  # between steps

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        rewrite = partial(self.tagged, key=dialogue.key)
        return await self.inner.rollout(task, dialogue, Rewritten(episode, rewrite))

    def tagged(self, text: str, key: int) -> str:
        parts = text.split(self.separator)
        at = int(np.random.default_rng(key).integers(len(parts)))
        return self.separator.join([*parts[:at], self.reflect + parts[at], *parts[at + 1 :]])
