"""State prediction task: `red=3 blue=5 do: move red blue`; the completion lists the items that the action changes.

A world model as a task (RLVR-World, 2505.13934): the completion is decoded into items and compared with the true ones.
A changed or new item is `blue=8`, one that is gone `red=`, and where nothing changes the completion is `none`.
Reading: each of four actions is equally likely, one of which changes nothing, so that "none" is right for a quarter.
Papers: rlvr-world
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.bundled.keyvalue import KEYS
from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import final_answer
from strop.environments.single_turn import SingleTurn
from strop.roles import Environment
from strop.types import Message, Task

_MOST = 6
_LARGEST = 9
_DO, _NOTHING = " do: ", "none"
_ITEM = re.compile(r"[a-z]{1,16}=[0-9]{0,4}")


@dataclass(frozen=True)
class NextState(Environment):
    """Store of level + 1 numbers and one action: set, move (add to another and remove), drop or look."""

    level: int
    seed: int = 0

    name: ClassVar[str] = "next_state"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _MOST)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        """Whether all that changes, and nothing else, is predicted."""
        return float(items_in(completion) == items_in(task.answer))

    def answer(self, completion: str) -> str:
        items = items_in(completion)
        return "" if items is None else " ".join(sorted(items)) or _NOTHING

    def solution(self, task: Task) -> str:
        return task.answer

    def _make(self, stream: random.Random) -> Task:
        keys = stream.sample(KEYS, self.level + 2)
        store = {key: stream.randrange(_LARGEST + 1) for key in keys[:-1]}
        action = _action(stream, keys)
        after = acted(store, action)
        shown = " ".join(f"{key}={value}" for key, value in store.items())
        return Task((Message("user", f"{shown}{_DO}{action}"),), changes(store, after), self.name, self.level)


def _action(stream: random.Random, keys: list[str]) -> str:
    """The last key is not in the store: to set it makes an item."""
    known, spare = keys[:-1], keys[-1]
    match stream.choice(("set", "move", "drop", "look")):
        case "set":
            return f"set {stream.choice([spare, stream.choice(known)])} {stream.randrange(_LARGEST + 1)}"
        case "move":
            return "move " + " ".join(stream.sample(known, 2))
        case "drop":
            return f"drop {stream.choice(known)}"
    return f"look {stream.choice(known)}"


def acted(store: Mapping[str, int], action: str) -> dict[str, int]:
    """The store after an action."""
    after = dict(store)
    match action.split():
        case ["set", key, value]:
            after[key] = int(value)
        case ["move", key, other]:
            after[other] += after.pop(key)
        case ["drop", key]:
            del after[key]
    return after


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """What differs, as items."""
    gone = [f"{key}=" for key in before if key not in after]
    other = [f"{key}={value}" for key, value in after.items() if before.get(key) != value]
    return " ".join([*gone, *other]) or _NOTHING


def store_of(task: Task) -> tuple[dict[str, int], str]:
    """The store that a task shows, and the action."""
    shown, _, action = prompt_of(task).partition(_DO)
    return {key: int(value) for key, _, value in (item.partition("=") for item in shown.split())}, action


def items_in(completion: str) -> set[str] | None:
    """The items that a completion predicts; None: it says something else. The same one twice is one."""
    words = final_answer(completion).split()
    if words == [_NOTHING]:
        return set()
    return set(words) if words and all(_ITEM.fullmatch(word) for word in words) else None
