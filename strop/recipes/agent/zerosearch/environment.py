"""Simulated search engine (ZeroSearch, 2505.04588): an LLM writes the results, with noise that grows over the run.

For each query a random draw decides whether the LLM is asked for a useful or a noisy text; noise has the probability p
= start + (base^(i / total) - 1) / (base - 1) * (end - start) at weight version i, and `end` from `total` on. The LLM is
given question and answer; the policy sees only the text it writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strop.capabilities import Dated, Learns
from strop.environments.bundled.search import Search, SearchEpisode
from strop.environments.data.heldout_split import prompt_of
from strop.environments.tools.tool import WrongCall
from strop.environments.tools.toolbox import Toolbox
from strop.environments.wrappers.around import Around
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import heard
from strop.roles import Asks, Instrument, LLMClient
from strop.text.llm_prompt import question
from strop.types import Group, Message, Metrics, Sampling, Start, Task

USEFUL, NOISY = "useful", "noisy"
ASKED = (
    "You are a search engine. Write one {kind} text of at most 30 words for the query: a useful one helps to answer "
    "the question, a noisy one is about the same things and does not. Write the text and nothing else."
)


@dataclass(frozen=True)
class SimulatedSearch(Around, Dated, Learns, Asks):
    """Tasks with a search tool whose queries `simulator` answers, with noise that grows over `total` versions."""

    inner: Search | Toolbox
    simulator: LLMClient
    total: int  # versions after which noise no longer grows
    start: float = 0.0  # probability of noise at first
    end: float = 0.5  # probability of noise at last
    base: float = 4.0  # 1: it grows evenly; more: later
    seconds: float = 10.0  # within which the simulator answers a query
    prompt: str = ASKED  # what the simulator is asked; {kind}: useful or noisy
    tokens: int = 512  # most tokens of a text, thoughts included

    def __post_init__(self) -> None:
        if not (0 <= self.start <= 1 and 0 <= self.end <= 1 and self.base > 0 and self.total >= 1 and self.seconds > 0):
            raise ConfigurationError(
                "SimulatedSearch needs probabilities from 0 to 1, base > 0, total >= 1 and seconds > 0, "
                f"got {self.start:g}, {self.end:g}, {self.base:g}, {self.total} and {self.seconds:g}"
            )

    def noise(self, version: int) -> float:
        """The probability that a query finds nothing useful."""
        share = min(version / self.total, 1.0)
        grown = share if self.base == 1 else (self.base**share - 1) / (self.base - 1)
        return self.start + grown * (self.end - self.start)

    def episode(self) -> SearchEpisode:
        return self.at(Start("", 0))

    def at(self, start: Start) -> SearchEpisode:
        """As it is for a rollout of this version; its key is the coin's."""
        tool = self._tool(self.noise(start.version), start.key)
        if isinstance(self.inner, Search):
            return _Told(self.inner.episode().inner, (tool,), seconds=self.seconds, style=self.inner.style)
        return _Told(self.inner.episode().inner, (tool,), self.inner.longest, self.seconds)

    def _tool(self, noise: float, key: int) -> _Simulated:
        real = self.inner.tool if isinstance(self.inner, Search) else self.inner.tools[0]
        return _Simulated(real, self.simulator, noise, key, self.prompt, self.tokens)

    async def try_clients(self, task: Task) -> None:
        await replace(self._tool(0.0, 0), task=task).call({"query": prompt_of(task)})

    def learn(self, groups: Sequence[Group]) -> Metrics:
        return {"search_noise": self.noise(max(group.version for group in groups))}


@dataclass
class _Told(SearchEpisode):
    """Episode wrapper that passes the task to the simulated search."""

    async def reset(self, task: Task) -> None:
        await super().reset(task)
        self._own = {name: replace(tool, task=task) for name, tool in self._own.items() if isinstance(tool, _Simulated)}


@dataclass(frozen=True)
class _Simulated(Instrument):
    """Search tool with the name and parameters of `real`, which is never called."""

    real: Instrument
    simulator: LLMClient
    noise: float
    key: int
    prompt: str
    tokens: int
    task: Task | None = None
    _queries: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.real.name

    @property
    def description(self) -> str:
        return self.real.description

    @property
    def parameters(self) -> str:
        return self.real.parameters

    async def call(self, arguments: dict[str, Any]) -> str:
        query = arguments["query"].strip()
        if not query or self.task is None:
            raise WrongCall("an empty query")
        self._queries.append(query)
        drawn = hashlib.sha256(f"{self.key}/{len(self._queries)}".encode()).digest()
        coin, key = int.from_bytes(drawn[:4], "big") / 2**32, int.from_bytes(drawn[4:11], "big")
        kind = NOISY if coin < self.noise else USEFUL
        about = {"task": prompt_of(self.task), "answer": self.task.answer, "completion": query}
        asked = question(self.prompt.format(kind=kind), wanted=kind, **about)
        said = await self.simulator.ask([Message("user", asked)], Sampling(max_tokens=self.tokens), key)
        return heard(self.simulator, said)
