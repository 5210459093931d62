"""A user's own rewards and environment."""

import random
import re
from dataclasses import dataclass, field

from strop.environments.tools.calculator import Calculator
from strop.environments.tools.toolbox import Toolbox
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task


def error(prompt: str, completion: str) -> float:
    """How far the last number is from the sum."""
    found = re.findall(r"\d+", completion.rpartition("</think>")[2])
    due = sum(map(int, re.findall(r"\d+", prompt)))
    return abs(int(found[-1][:9]) - due) if found else 1000


def close(prompt: str, completion: str) -> float:
    """A score without a stated range."""
    return max(0.0, 1 - error(prompt, completion) / 50)


def signed(prompt: str, completion: str) -> float:
    return 1.0 if error(prompt, completion) == 0 else -1.0


def ten(prompt: str, completion: str) -> float:
    return 10.0 if error(prompt, completion) == 0 else 1.0


signed.low = -1.0  # type: ignore[attr-defined]
signed.high = 1.0  # type: ignore[attr-defined]
ten.low = 1.0  # type: ignore[attr-defined]
ten.high = 10.0  # type: ignore[attr-defined]


@dataclass
class Game(Episode):
    """The environment answers `higher` or `lower`."""

    task: Task = field(init=False)
    left: int = field(init=False)

    async def reset(self, task: Task) -> None:
        self.task, self.left = task, 3

    async def step(self, completion: Message) -> Observation:
        said, hidden = completion.content.rpartition("</think>")[2].strip()[:4], int(self.task.answer)
        self.left -= 1
        if said == str(hidden) or not self.left:
            return Observation(done=True, reward=float(said == str(hidden)))
        told = "say a number" if not said.isdigit() else "higher" if int(said) < hidden else "lower"
        return Observation((Message("user", told),), done=False, reward=0.0)


@dataclass(frozen=True)
class Hunt(Environment):
    """Guess a number within three turns."""

    level: int = 1
    name: str = "hunt"

    def task(self, index: int, heldout: bool = False) -> Task:
        stream = random.Random(f"{index}/{heldout}")
        low = 2 * stream.randrange(45) + heldout
        hidden = low + stream.randrange(8)
        return Task((Message("user", f"guess {low}..{low + 7} in 3"),), str(hidden), self.name, self.level)

    def episode(self) -> Game:
        return Game()

    def check(self, task: Task, completion: str) -> float:
        return float(completion.rpartition("</think>")[2].strip() == task.answer)


def numbers() -> Environment:
    """The game with a tool beside it."""
    return Toolbox(Hunt(), (Calculator(),))
