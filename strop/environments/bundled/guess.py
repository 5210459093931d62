"""Number guessing game over several turns: the environment answers `higher` or `lower`; the level sets the range.

Binary search always succeeds within the turn limit; counting up succeeds only sometimes.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import ClassVar

from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import final_answer, think
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

SIZES = {1: 4, 2: 8, 3: 16, 4: 32, 5: 64}
_LARGEST = 99


def parse(prompt: str) -> tuple[int, int, int]:
    """The range, and how many turns there are."""
    found = re.search(r"guess (\d+)\.\.(\d+) in (\d+)", prompt)
    if not found:
        raise ValueError(f"not a guessing task: {prompt!r}")
    return int(found.group(1)), int(found.group(2)), int(found.group(3))


def check_guess(task: Task, completion: str) -> float:
    """Whether a completion names the hidden number."""
    return float(guessed(completion) == int(task.answer))


def guessed(completion: str) -> int | None:
    """The number a completion names; zeros in front are no mistake."""
    text = final_answer(completion)
    # longer numerals are refused unread: int() of a huge one is slow, and past 4300 digits an error
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text) else None


@dataclass
class GuessEpisode(Episode):
    """Episode of one game; `low` and `high` bound the numbers that are still possible."""

    task: Task = field(init=False, repr=False, compare=False)
    low: int = field(init=False, repr=False, compare=False)
    high: int = field(init=False, repr=False, compare=False)
    turns_left: int = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task = task
        self.low, self.high, self.turns_left = parse(prompt_of(task))

    async def step(self, completion: Message) -> Observation:
        self.turns_left -= 1
        if check_guess(self.task, completion.content):
            return Observation(done=True, reward=1.0)
        if self.turns_left <= 0:
            return Observation(done=True, reward=0.0)
        return Observation((Message("user", self._answer(completion)),), done=False, reward=0.0)

    async def close(self) -> None:
        pass

    def demonstrate(self) -> Message:
        return Message("assistant", think([f"{self.low}..{self.high}"], str((self.low + self.high) // 2)))

    def _answer(self, completion: Message) -> str:
        guess = guessed(completion.content)
        if guess is None:
            return "say a number"
        if guess < int(self.task.answer):
            self.low = max(self.low, guess + 1)
            return "higher"
        self.high = min(self.high, guess - 1)
        return "lower"


@dataclass(frozen=True)
class Guess(Environment):
    """Number guessing environment.

    The split is by range: held-out ranges are never trained on. Within a range every number can be the hidden one, so
    the split reveals nothing about where to look.
    """

    level: int
    seed: int = 0
    name: ClassVar[str] = "guess"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(SIZES), max(SIZES))

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> GuessEpisode:
        return GuessEpisode()

    def check(self, task: Task, completion: str) -> float:
        return check_guess(task, completion)

    def answer(self, completion: str) -> str:
        number = guessed(completion)
        return "" if number is None else str(number)

    def _make(self, stream: random.Random) -> Task:
        size = SIZES[self.level]
        low = stream.randint(1, _LARGEST - size + 1)
        # 2^k numbers need k + 1 guesses at worst
        prompt = f"guess {low}..{low + size - 1} in {size.bit_length()}"
        return Task((Message("user", prompt),), str(stream.randrange(low, low + size)), self.name, self.level)
