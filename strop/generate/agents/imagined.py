"""Imagined conversations (2311.05584): users and whoever talks with them are made up, good talks and bad ones alike.

Papers: imagined-conversations
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Literal

from strop.environments.bundled.guess import parse
from strop.environments.data.heldout_split import prompt_of
from strop.environments.format.think_tags import think
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task

Persona = Literal["halves", "wanders", "counts"]


@dataclass(frozen=True)
class Imagined(Agent):
    """A persona, drawn for each attempt, plays a game of guessing; everything is said, and nothing sampled.

    One halves the range, one guesses anywhere within what is left, one counts up from below: talks that succeed, some
    that do, and some that do not. Without bad ones nothing could tell what is good. Whether a talk succeeded is judged
    from what was said in it.
    """

    personas: tuple[Persona, ...] = ("halves", "wanders", "counts")

    origin: ClassVar[Origin] = Origin.TEACHER

    def __post_init__(self) -> None:
        if not self.personas:
            raise ConfigurationError("Imagined needs at least 1 persona, got 0")

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        await environment.reset(task)
        stream, (low, high, turns) = random.Random(dialogue.key), parse(prompt_of(task))
        persona, paid = stream.choice(self.personas), list[float]()
        for _ in range(turns):
            guess = _guess(persona, low, high, stream)
            dialogue.say(said := Message("assistant", think([f"{low}..{high}"], str(guess))))
            answer = await environment.step(said)
            paid.append(answer.reward or 0.0)
            if answer.done or dialogue.is_cut:
                break
            dialogue.hear(answer.messages)
            is_higher = answer.messages[-1].content == "higher"
            low, high = (guess + 1, high) if is_higher else (low, guess - 1)
        return tuple(paid)


def _guess(persona: Persona, low: int, high: int, stream: random.Random) -> int:
    match persona:
        case "halves":
            return (low + high) // 2
        case "counts":
            return low
    return stream.randint(low, high)
