"""Asks for help at random, else lets the policy act (2502.04576): how it is found out where help is worth its price.

Papers: self-regulation
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.environments.bundled.ask_for_help import HELP
from strop.errors import ConfigurationError
from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue
from strop.roles import Agent, Environment
from strop.types import Message, Origin, Task


@dataclass(frozen=True)
class HelpAtRandom(Agent):
    """Before each turn `help` is said with probability `share` (by nobody); the policy may ask by itself, too."""

    share: float = 0.3  # of turns in which help is asked for
    max_turns: int = 8  # of one attempt

    origin: ClassVar[Origin] = Origin.GUIDED

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.max_turns < 1:
            raise ConfigurationError(
                f"HelpAtRandom needs 0 <= share <= 1 and max_turns >= 1, got {self.share} and {self.max_turns}"
            )

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        answers = await where_it_stands(task, dialogue, environment)
        chances = np.random.default_rng(dialogue.key).random(self.max_turns)
        while len(answers) < self.max_turns and not (answers and answers[-1].done) and not dialogue.is_cut:
            is_helped = bool(chances[len(answers)] < self.share)
            answers.append(await environment.step(await _said(dialogue, is_helped)))
            if not answers[-1].done:
                dialogue.hear(answers[-1].messages)
        return tuple(answer.reward or 0.0 for answer in answers)


async def _said(dialogue: Dialogue, is_helped: bool) -> Message:
    if not is_helped:
        return await dialogue.reply()
    message = Message("assistant", HELP)
    dialogue.say(message)
    return message
