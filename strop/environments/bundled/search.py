"""Search task: questions about made-up planets, answered by the bundled text collection (`size of sun of 417?`).

The level is the number of searches needed; no model can know the answers. The policy calls `search`; a completion
without a call is its answer, which is the text after the chain of thought.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import final_answer, think
from strop.environments.single_turn import SingleTurn
from strop.environments.tools.bundled_corpus import PLANET, SUN, THINGS, facts, query, subjects
from strop.environments.tools.search_tool import Retrieval
from strop.environments.tools.tool import offered
from strop.environments.tools.toolbox import ToolboxEpisode, calling
from strop.errors import ConfigurationError
from strop.roles import Environment, Instrument
from strop.types import Message, Task

UNKNOWN = "?"  # what a demonstration guesses before it has searched
_CHAINS: dict[int, tuple[tuple[str, ...], ...]] = {1: ((),), 2: ((SUN,), (PLANET,)), 3: ((SUN, PLANET),)}


@dataclass(frozen=True)
class Search(Environment):
    """Search environment; `style` is the format of its demonstrations."""

    level: int
    seed: int = 0
    style: Literal["plain", "refine", "guess"] = "plain"  # refine: think of what was found; guess before any search
    tool: Instrument = field(default_factory=Retrieval)
    name: ClassVar[str] = "search"
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, min(_CHAINS), max(_CHAINS))
        if self.style not in ("plain", "refine", "guess"):
            raise ConfigurationError(f"Search has the styles plain, refine and guess, got {self.style!r}")

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SearchEpisode:
        return SearchEpisode(SingleTurn(self), (self.tool,), style=self.style)

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == task.answer)

    def answer(self, completion: str) -> str:
        return final_answer(completion)

    def solution(self, task: Task) -> str:
        return task.answer

    def _make(self, stream: random.Random) -> Task:
        things = (stream.choice(THINGS), *stream.choice(_CHAINS[self.level]))
        first = stream.choice(subjects(things[-1]))
        found = first
        for thing in reversed(things):
            found = facts()[thing, found]
        prompt = f"{' of '.join((*things, first))}?"
        return Task((Message("user", prompt),), found, self.name, self.level, tools=(offered(self.tool),))


@dataclass
class SearchEpisode(ToolboxEpisode):
    """Episode whose demonstrations know the next query."""

    style: str = "plain"

    def demonstrate(self) -> Message:
        """The next search, from what the last one found; then the answer."""
        *things, first = prompt_of(self.task).removesuffix("?").split(" of ")
        count = len(self.heard)
        found = self.heard[-1].split(" ")[-1] if count else first
        said = think([found] if count and self.style == "refine" else [], "")
        if count >= len(things):
            return Message("assistant", said + found)
        if not count and self.style == "guess":
            said = UNKNOWN
        return calling(self.tools[0], said, query=query(things[-1 - count], found))
