"""Hawkeye's two models (2504.00424): the policy writes a short chain of thought, a small model the answer from it.

Papers: hawkeye
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE, OPEN
from strop.errors import ConfigurationError
from strop.generate.interfaces import Dialogue
from strop.roles import Adviser, Agent, Environment
from strop.text.sanitize import quoted
from strop.types import Message, Origin, Sampling, Task


@dataclass(frozen=True)
class Relayed(Agent):
    """The world hears the small model's answer to the question with the chain behind it, and pays the policy for it.

    What the small model writes is in no attempt: neither trained nor counted as the policy's. It answers greedily.
    """

    answerer: Adviser
    max_tokens: int = 64  # of an answer
    asks: str = "{question} hint: {chain}"  # what the small model reads

    origin: ClassVar[Origin] = Origin.POLICY

    def __post_init__(self) -> None:
        if "{chain}" not in self.asks or self.max_tokens < 1:
            raise ConfigurationError(
                f"Relayed needs {{chain}} in asks and max_tokens >= 1, got {self.asks!r} and {self.max_tokens}"
            )

    async def attempt(self, task: Task, dialogue: Dialogue, environment: Environment) -> tuple[float, ...]:
        if dialogue.turns:
            raise ConfigurationError(
                "Relayed begins at the beginning: use a strategy that does not go on from a middle"
            )
        await environment.reset(task)
        chain = await dialogue.reply()
        sampling = Sampling(temperature=0.0, max_tokens=self.max_tokens)
        said = await self.answerer.ask(self._question(task, chain.content), sampling, dialogue.key)
        answer = await environment.step(Message("assistant", said))
        return () if answer.reward is None else (answer.reward,)

    def _question(self, task: Task, chain: str) -> tuple[Message, ...]:
        *before, last = task.messages
        words = quoted(chain.replace(OPEN, " ").replace(CLOSE, " ")).strip()
        return (*before, replace(last, content=self.asks.format(question=last.content, chain=words)))
