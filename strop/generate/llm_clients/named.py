"""LLM client under the name that a run gives it: counts of questions asked, failed and unread, and a limit to both."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strop.errors import ConfigurationError, LLMClientError
from strop.roles import CountsUnread, LLMClient
from strop.text.llm_prompt import instruction
from strop.types import Message, Metrics, Sampling
from strop.workers.untrusted_answers import NoAnswer, entries, number

_SHOWN = 120  # characters of a question or an answer in a message
_COUNTS, _MOST = ("asked", "failed", "unread"), 1e6  # of one call of a reward
_KEPT = 4096  # characters of a question and of a problem that go to another process


@dataclass
class Named(LLMClient, CountsUnread):
    """Client that counts its questions by `role`; a run ends when too many of the last ones had no readable answer."""

    client: LLMClient
    role: str = "judge"  # parameter of the recipe
    called: str = ""  # its value: an address, a folder, a file's function
    most_lost: float = 0.5  # largest share of the last questions that failed or whose answer could not be read
    window: int = 16  # questions over which this share is taken

    _since: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # the last step
    _lost: deque[bool] = field(init=False, repr=False, compare=False)  # of the last questions
    _asked: str = field(default="", init=False, repr=False, compare=False)
    _problem: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.most_lost <= 1 or self.window < 1:
            raise ConfigurationError(
                f"Named needs 0 < most_lost <= 1 and window >= 1, got {self.most_lost} and {self.window}"
            )
        self._lost = deque(maxlen=self.window)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self._count("asked")
        self._asked = messages[-1].content
        try:
            said = await self.client.ask(messages, sampling, key)
        except LLMClientError as error:
            self._count("failed")
            self._lost.append(True)
            self._problem = str(error)
            raise
        self._lost.append(False)
        return said

    def unread(self, said: str) -> None:
        self._count("unread")
        self._problem = f"it answered {line_of(said)!r}, which cannot be read"
        readable = [place for place, is_lost in enumerate(self._lost) if not is_lost]
        if readable:
            self._lost[readable[-1]] = True

    @property
    def num_asked(self) -> int:
        return self._since.get("asked", 0)

    def problem(self, least: int = 0) -> str:
        """Why a run cannot go on with it, judged from `least` questions on; empty: it can."""
        count, lost = len(self._lost), sum(self._lost)
        if count < (least or self.window) or not count or lost <= self.most_lost * count:
            return ""
        asked = line_of(instruction(self._asked))
        return (
            f"{self.role}={self.called}: {lost} of the last {count} questions had no readable answer "
            f"(limit {self.most_lost:.0%}); the last: {self._problem}; it was asked {asked!r}"
        )

    def taken(self) -> Metrics:
        """Counts since they were last taken, by role."""
        since, self._since = self._since, {}
        named = _COUNTS if since else ()
        return {f"{self.role}/{name}": float(since.get(name, 0)) for name in named}

    def told(self) -> dict[str, Any]:
        """What was counted since it was last told, as plain data, for another process."""
        since, lost, self._since = self._since, list(self._lost), {}
        self._lost.clear()
        return {"counts": since, "lost": lost, "asked": self._asked[-_KEPT:], "problem": self._problem[:_KEPT]}

    def add(self, told: Any) -> None:
        """Take over what the same client counted in another process, which runs foreign code."""
        found = entries(told, counts=dict, lost=list, asked=str, problem=str)
        for name, count in found["counts"].items():
            if name not in _COUNTS or not 0 <= number(count) <= _MOST:
                raise NoAnswer(f"answered {count!r} for the count {name!r} of a judge")
            self._since[name] = self._since.get(name, 0) + int(count)
        self._lost.extend(each is True for each in found["lost"][-self.window :])
        if found["asked"]:
            self._asked, self._problem = found["asked"], found["problem"] or self._problem

    def _count(self, name: str) -> None:
        self._since[name] = self._since.get(name, 0) + 1


def line_of(text: str) -> str:
    """A text cut to a line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def taken(clients: Sequence[Named]) -> Metrics:
    """Counts of all clients since they were last taken; those of one role add up."""
    total: Metrics = {}
    for client in clients:
        for name, count in client.taken().items():
            total[name] = total.get(name, 0.0) + count
    return total


def judged_alike(clients: Sequence[Named]) -> str:
    """What a run without contrast has to do with its judges; empty: it has none."""
    names = ", ".join(dict.fromkeys(f"{each.role}={each.called}" for each in clients))
    alike = "where it scores all completions alike, only another judge or prompt helps"
    return f". The scores are those of {names}: {alike}" if names else ""


def check_answers(clients: Sequence[Named]) -> None:
    """Stop a run that mostly gets no readable answers: what is left would be a biased sample."""
    if problem := next((text for each in clients if (text := each.problem())), ""):
        raise LLMClientError(problem)
