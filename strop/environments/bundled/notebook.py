"""Data analysis in a Python notebook: `table 4831: range?`, where the table is the variable `x` and never shown.

Each completion is a thought followed by a cell to run, or the answer. The level is the number of cells needed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import final_answer, final_number, think
from strop.environments.single_turn import SingleTurn
from strop.environments.tools.python_notebook import Cells
from strop.environments.tools.tool import offered
from strop.environments.tools.toolbox import ToolboxEpisode, calling
from strop.roles import Environment
from strop.types import Message, Task


class Quantity(NamedTuple):
    """Quantity asked for, the cells that compute it, and its value."""

    name: str
    cells: tuple[str, ...]
    of: Callable[[list[int]], int]


QUANTITIES = {
    1: (
        Quantity("sum", ("sum(x)",), sum),
        Quantity("top", ("max(x)",), max),
        Quantity("low", ("min(x)",), min),
        Quantity("count", ("len(x)",), len),
    ),
    2: (
        Quantity("range", ("a=max(x)", "a-min(x)"), lambda x: max(x) - min(x)),
        Quantity("mean", ("a=sum(x)", "a//len(x)"), lambda x: sum(x) // len(x)),
        Quantity("middle", ("a=sorted(x)", "a[len(x)//2]"), lambda x: sorted(x)[len(x) // 2]),
    ),
}


@dataclass(frozen=True)
class Notebook(Environment):
    """Environment of data tables in a notebook."""

    level: int
    seed: int = 0
    cells: Cells = field(default_factory=Cells)  # where code runs
    name: ClassVar[str] = "notebook"
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(QUANTITIES), max(QUANTITIES))

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> NotebookEpisode:
        return NotebookEpisode(SingleTurn(self), (self.cells,))

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        return final_number(completion)

    def solution(self, task: Task) -> str:
        return think([task.answer], task.answer)

    def _make(self, stream: random.Random) -> Task:
        number, quantity = stream.randrange(1000, 10_000), stream.choice(QUANTITIES[self.level])
        prompt = f"table {number}: {quantity.name}?"
        answer = str(quantity.of(table(number)))
        return Task((Message("user", prompt),), answer, self.name, self.level, tools=(offered(self.cells),))


@dataclass
class NotebookEpisode(ToolboxEpisode):
    """Episode that loads the table into the notebook; its demonstrations run the cells that find the quantity."""

    async def reset(self, task: Task) -> None:
        await super().reset(task)
        for tool in self._own.values():
            if isinstance(tool, Cells):
                tool.begin(f"x = {json.dumps(table(int(prompt_of(task).split()[1].removesuffix(':'))))}")

    def demonstrate(self) -> Message:
        name = prompt_of(self.task).split()[2].removesuffix("?")
        (quantity,) = (each for each in QUANTITIES[self.task.level] if each.name == name)
        if len(self.heard) < len(quantity.cells):
            return calling(self.tools[0], think([name], ""), code=quantity.cells[len(self.heard)])
        return Message("assistant", think([self.heard[-1]], self.heard[-1]))


def table(number: int) -> list[int]:
    """The same numbers in every environment."""
    stream = random.Random(f"table/{number}")
    return [stream.randrange(100) for _ in range(stream.randint(5, 15))]
