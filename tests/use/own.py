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
class Checked(Episode):
    """A sum with a second try; the environment says `too low` or `too high`."""

    task: Task = field(init=False)
    left: int = field(init=False)

    async def reset(self, task: Task) -> None:
        self.task, self.left = task, 2

    async def step(self, completion: Message) -> Observation:
        found = re.findall(r"\d+", completion.content.rpartition("</think>")[2])
        said, due = (int(found[-1][:9]) if found else -1), int(self.task.answer)
        self.left -= 1
        if said == due or not self.left:
            return Observation(done=True, reward=float(said == due))
        told = f"{'too low' if said < due else 'too high'}, again: {self.task.messages[-1].content}"
        return Observation((Message("user", told),), done=False, reward=0.0)


@dataclass(frozen=True)
class Sums(Environment):
    """Sums that may be tried twice."""

    level: int = 1
    name: str = "second_try"

    def task(self, index: int, heldout: bool = False) -> Task:
        stream = random.Random(f"{index}/{heldout}")
        first, second = stream.randrange(10, 100), 2 * stream.randrange(5, 50) + heldout  # held-out ones end oddly
        return Task((Message("user", f"{first}+{second}=?"),), str(first + second), self.name, self.level)

    def episode(self) -> Checked:
        return Checked()

    def check(self, task: Task, completion: str) -> float:
        return float(re.findall(r"\d+", "0 " + completion.rpartition("</think>")[2])[-1] == task.answer)


def numbers() -> Environment:
    """The environment with a tool beside it."""
    return Toolbox(Sums(), (Calculator(),))
