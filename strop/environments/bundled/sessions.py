"""Memory task over several sessions: each session's context is discarded, and only the memory text is carried over.

`memory: red 3 session: blue 7 red 4` is answered with the new memory, `red 4 blue 7`; the level is the number of
sessions. After each session all facts told so far are asked for; longer memories cost reward.

Papers: memory-r2
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.bundled.keyvalue import KEYS
from strop.environments.data.heldout_split import draw, require_level
from strop.environments.format.think_tags import final_answer
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

_MOST = 8
_FACTS = 2  # of a session
_PRICE, _FREE = 0.3, 0.7  # of memory beyond this share of what was told, in words
_NOTHING = "none"
_LONGEST = 400  # characters of a memory that is carried on
_MEMORY, _SESSION = "memory: ", " session: "


def facts_in(text: str) -> dict[str, str]:
    """Pairs of a key and a number, the last of each key."""
    found = re.findall(rf"\b({'|'.join(KEYS)}) ([0-9])\b", text[:_LONGEST])
    return dict(found)


def listed(facts: Mapping[str, str]) -> str:
    return " ".join(f"{key} {value}" for key, value in facts.items()) or _NOTHING


def split_message(content: str) -> tuple[str, str]:
    """The memory so far, and what this session says."""
    memory, _, session = content.removeprefix(_MEMORY).partition(_SESSION)
    return memory, session


def carried(completion: str) -> str:
    """The memory that a completion is for what comes after it."""
    return " ".join(final_answer(completion)[:_LONGEST].split()) or _NOTHING


def extractor_reads(session: str) -> tuple[Message, ...]:
    return (Message("user", f"extract: {session}"),)


def manager_reads(memory: str, new: str) -> tuple[Message, ...]:
    return (Message("user", f"memory: {memory} new: {new}"),)


def score(memory: str, told: Mapping[str, str], words: int) -> float:
    """Share of all facts that the memory knows, less a price for words beyond 70 % of those that were told."""
    known = facts_in(memory)
    share = sum(known.get(key) == value for key, value in told.items()) / max(len(told), 1)
    size = len(memory.split()) if memory != _NOTHING else 0
    return share - _PRICE * max(0.0, size - _FREE * words) / max(words, 1)


@dataclass
class SessionsEpisode(Episode):
    """Episode of one conversation; the completion to a session is the memory that starts the next one.

    Each session is rewarded with its part of the mean score over sessions.
    """

    _sessions: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    _told: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _memory: str = field(default=_NOTHING, init=False, repr=False, compare=False)
    _words: int = field(default=0, init=False, repr=False, compare=False)
    _place: int = field(default=0, init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        secret = json.loads(task.answer)
        self._sessions, self._told, self._words = secret["sessions"], dict(secret["told"]), secret["words"]
        self._memory, self._place = secret["memory"], 0

    async def step(self, completion: Message) -> Observation:
        session = self._sessions[self._place]
        self._told |= facts_in(session)
        self._words += len(session.split())
        self._place += 1
        self._memory = carried(completion.content)
        paid = score(self._memory, self._told, self._words) / len(self._sessions)
        if self._place == len(self._sessions):
            return Observation(done=True, reward=paid)
        return Observation((_message(self._memory, self._sessions[self._place]),), done=False, reward=paid)

    def demonstrate(self) -> Message:
        return Message("assistant", listed(facts_in(self._memory) | facts_in(self._sessions[self._place])))


@dataclass(frozen=True)
class Sessions(Environment):
    """Environment of conversations in sessions; `check` asks the last memory for every fact."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "sessions"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _MOST)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SessionsEpisode:
        return SessionsEpisode()

    def check(self, task: Task, completion: str) -> float:
        told = facts_in(" ".join(json.loads(task.answer)["sessions"]))
        return float(all(facts_in(final_answer(completion)).get(key) == value for key, value in told.items()))

    def _make(self, stream: random.Random) -> Task:
        told = [" ".join(_fact(stream) for _ in range(_FACTS)) for _ in range(self.level)]
        return _task(told, {}, _NOTHING, 0, self.level)


def _fact(stream: random.Random) -> str:
    return f"{stream.choice(KEYS)} {stream.randrange(10)}"


def one_session(task: Task, number: int, memory: str) -> Task:
    """Session `number` of a conversation alone, which begins with this memory."""
    secret: dict[str, Any] = json.loads(task.answer)
    before = secret["sessions"][:number]
    told = dict(secret["told"]) | facts_in(" ".join(before))
    words = secret["words"] + sum(len(each.split()) for each in before)
    return _task([secret["sessions"][number]], told, memory, words, task.level)


def num_sessions(task: Task) -> int:
    return len(json.loads(task.answer)["sessions"])


def _task(sessions: list[str], told: dict[str, str], memory: str, words: int, level: int) -> Task:
    secret = json.dumps({"sessions": sessions, "told": told, "memory": memory, "words": words})
    return Task((_message(memory, sessions[0]),), secret, Sessions.name, level)


def _message(memory: str, session: str) -> Message:
    return Message("user", f"{_MEMORY}{memory}{_SESSION}{session}")
