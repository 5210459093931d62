"""Satori's format (2502.02508), shown: the world's own reply, with a marker in its middle that asks to look it over.

Reading: of the paper's three meta actions only the one that restarts use; what follows is the right reply going on.
Papers: satori
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.abilities import Demonstrates
from strop.errors import ConfigurationError
from strop.generate.partners import Dialogue
from strop.roles import Agent, Environment
from strop.types import Origin, Task


@dataclass(frozen=True)
class DemonstrateReflection(Agent):
    """The world's demonstration in one reply with `reflect` before one of its steps, which one is left to chance."""

    reflect: str = "?"
    separator: str = " "  # between two steps

    origin: ClassVar[Origin] = Origin.TEACHER

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if not isinstance(environment, Demonstrates):
            raise ConfigurationError(
                f"{type(environment).__name__} has no demonstrate(), so nothing can be shown in it"
            )
        await environment.reset(task)
        shown = environment.demonstrate()
        told = replace(shown, content=self.marked(shown.content, dialogue.key))
        dialogue.say(told)
        answer = await environment.step(told)
        return () if answer.reward is None else (answer.reward,)

    def marked(self, text: str, key: int) -> str:
        parts = text.split(self.separator)
        at = int(np.random.default_rng(key).integers(len(parts)))
        return self.separator.join([*parts[:at], self.reflect + parts[at], *parts[at + 1 :]])
