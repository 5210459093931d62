"""Taboo-style game for two (`describe 17`: `8+9`), and a referee that aborts games at an invalid move (Playpen).

One describes a number without naming it, so that a partner finds it: a rule that adds up, or another model. The level
is the number of digits. An aborted game earns 0, which is not the same as losing (2504.08590).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from strop.environments.data.heldout_split import draw, require_level
from strop.environments.format.demonstrations import demonstrating
from strop.environments.format.think_tags import final_answer, final_number
from strop.environments.wrappers.around import Around
from strop.roles import Environment, Episode, LLMClient
from strop.types import Message, Observation, Sampling, Task


@runtime_checkable
class Moves(Protocol):
    """Environment that says which completions are moves of its game."""

    def is_move(self, completion: str) -> bool: ...


def is_move(env: Environment, completion: Message) -> bool:
    """Whether a completion is a move; where the environment does not say, it calls a tool or gives an answer."""
    if isinstance(env, Moves):
        return env.is_move(completion.content)
    return bool(completion.tool_calls) or bool(env.answer(completion.content))


@dataclass
class RefereedEpisode(Episode):
    """Episode that ends at the first invalid move: no call of a tool, and no answer."""

    inner: Episode
    env: Environment

    async def reset(self, task: Task) -> None:
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        if not is_move(self.env, completion):
            return Observation(done=True, reward=0.0)
        return await self.inner.step(completion)

    async def close(self) -> None:
        await self.inner.close()

    def demonstrate(self) -> Message:
        return demonstrating(self.inner).demonstrate()


@dataclass(frozen=True)
class Refereed(Around):
    """Refereed version of an environment: an invalid move ends the episode with reward 0."""

    def episode(self) -> RefereedEpisode:
        return RefereedEpisode(self.inner.episode(), self.inner)


_SUM = re.compile(r"[0-9]{1,4}(?:\+[0-9]{1,4}){1,3}")
_ROUNDS = 3
_SAMPLING = Sampling(temperature=0.0, max_tokens=64)  # of the partner


def described(completion: str) -> str:
    """The description in a completion; empty: it is none."""
    text = final_answer(completion)
    return text if _SUM.fullmatch(text) else ""


@dataclass
class DescribeEpisode(Episode):
    """Episode of `_ROUNDS` rounds; a number found in round k earns 1 / k."""

    partner: LLMClient | None = None  # None: a rule that adds up
    _task: Task = field(init=False, repr=False, compare=False)
    _round: int = field(default=0, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self._task, self._round = task, 0

    async def step(self, completion: Message) -> Observation:
        self._round += 1
        text = described(completion.content)
        if not text or self._task.answer in text.split("+"):
            return Observation(done=True, reward=0.0)  # no description, or one that says the number: it is lost
        guess = await self._guess(text)
        if guess == self._task.answer:
            return Observation(done=True, reward=1 / self._round)
        is_over = self._round >= _ROUNDS
        return Observation((Message("user", f"partner says {guess or 'nothing'}"),), done=is_over, reward=0.0)

    async def _guess(self, text: str) -> str:
        if self.partner is None:
            return str(sum(map(int, text.split("+"))))
        said = await self.partner.ask([Message("user", f"{text}=?")], _SAMPLING, self._round)
        return final_number(said)

    def demonstrate(self) -> Message:
        """1 of the first digit apart: 10+7, 10+40; where that is the number itself, 1 apart: 9+1."""
        number, first = int(self._task.answer), 10 ** (len(self._task.answer) - 1)
        first = first if number > first else number - 1
        return Message("assistant", f"{first}+{number - first}")


@dataclass(frozen=True)
class Describe(Environment):
    """Environment of the describing game."""

    level: int
    seed: int = 0
    partner: LLMClient | None = None  # who finds the number; None: a rule that adds up
    name: ClassVar[str] = "describe"

    @property
    def is_inline(self) -> bool:
        return True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, 4)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> DescribeEpisode:
        return DescribeEpisode(self.partner)

    def check(self, task: Task, completion: str) -> float:
        """Whether a description says the number to somebody who adds up, and not by its name."""
        terms = described(completion).split("+")
        return float(terms != [""] and task.answer not in terms and sum(map(int, terms)) == int(task.answer))

    def answer(self, completion: str) -> str:
        return described(completion)

    def _make(self, stream: random.Random) -> Task:
        number = stream.randrange(max(10 ** (self.level - 1), 3), 10**self.level)
        return Task((Message("user", f"describe {number}"),), str(number), self.name, self.level)
