"""Key-value store behind tool calls: `sum red blue to gold` needs a look-up per key, perhaps a write, then the sum.

Calls are `<call>get red</call>` and `<call>set gold 12</call>`; the level is the number of look-ups.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import between, final_answer, final_number, sum_steps, think
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

KEYS = ("red", "blue", "gold", "pink", "gray", "lime", "cyan", "teal", "navy", "plum", "rose", "sand", "jade", "ruby")
_MOST_LOOKUPS = 6
_SPARE_TURNS = 2


def parse(prompt: str) -> tuple[list[str], str]:
    """The keys to add up, and the key to store the sum under (empty: none)."""
    keys, _, target = prompt.partition("sum ")[2].partition(" to ")
    return keys.split(), target


def call(text: str) -> str:
    """A tool call as the policy writes it."""
    return f"<call>{text}</call>"


@dataclass
class KeyValueEpisode(Episode):
    """Episode with its own store; a completion without a call is the answer."""

    task: Task = field(init=False, repr=False, compare=False)
    store: dict[str, str] = field(init=False, repr=False, compare=False)
    known: dict[str, int] = field(init=False, repr=False, compare=False)
    turns_left: int = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task, self.known = task, {}
        self.store = {key: str(value) for key, value in self._secret["store"].items()}
        keys, target = parse(prompt_of(task))
        self.turns_left = len(keys) + (2 if target else 1) + _SPARE_TURNS

    async def step(self, completion: Message) -> Observation:
        self.turns_left -= 1
        calls = between(completion.content, "<call>", "</call>")
        if not calls:
            return Observation(done=True, reward=self._paid(completion))
        answers = tuple(Message("tool", self._run(text)) for text in calls)
        return Observation(answers, done=self.turns_left <= 0, reward=0.0)

    async def close(self) -> None:
        pass

    def demonstrate(self) -> Message:
        keys, target = parse(prompt_of(self.task))
        missing = [key for key in keys if key not in self.known]
        if missing:
            return Message("assistant", call(f"get {missing[0]}"))
        steps, total = sum_steps([self.known[key] for key in keys])
        if target and self.store.get(target) != str(total):
            return Message("assistant", think(steps, call(f"set {target} {total}")))
        return Message("assistant", str(total) if target else think(steps, str(total)))

    @property
    def _secret(self) -> Mapping[str, Any]:
        secret: Mapping[str, Any] = json.loads(self.task.answer)
        return secret

    def _run(self, text: str) -> str:
        """The tool's answer to one call."""
        match text.split(" "):
            case ["get", key]:
                return self._get(key)
            case ["set", key, value]:
                return self._set(key, value)
        return "error: get KEY or set KEY NUMBER"

    def _get(self, key: str) -> str:
        if key not in self.store:
            return "error: no such key"
        self.known[key] = int(self.store[key])
        return self.store[key]

    def _set(self, key: str, value: str) -> str:
        if not re.fullmatch(r"[0-9]{1,4}", value):
            return "error: not a number"
        self.store[key] = value
        return "ok"

    def _paid(self, completion: Message) -> float:
        target = parse(prompt_of(self.task))[1]
        total = str(self._secret["total"])
        is_stored = not target or self.store.get(target) == total
        return float(final_answer(completion.content) == total and is_stored)


@dataclass(frozen=True)
class KeyValue(Environment):
    """Key-value environment; `check` sees the last completion only, the episode also checks what was stored."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "keyvalue"
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _MOST_LOOKUPS)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> KeyValueEpisode:
        return KeyValueEpisode()

    def check(self, task: Task, completion: str) -> float:
        return float(final_answer(completion) == str(json.loads(task.answer)["total"]))

    def answer(self, completion: str) -> str:
        return final_number(completion)

    def is_move(self, completion: str) -> bool:
        """A call, or the answer."""
        return bool(between(completion, "<call>", "</call>") or self.answer(completion))

    def _make(self, stream: random.Random) -> Task:
        keys = stream.sample(KEYS, self.level + 1)
        target = keys.pop() if stream.random() < 0.5 else ""
        keys = keys[: self.level]
        # the target starts empty, or the right sum might stand there without having been stored
        store = {key: stream.randrange(10) for key in KEYS if key != target}
        prompt = f"sum {' '.join(keys)}" + (f" to {target}" if target else "")
        secret = {"store": store, "total": sum(store[key] for key in keys)}
        return Task((Message("user", prompt),), json.dumps(secret), self.name, self.level)
