"""Web navigation over small text pages: `find plum: red blue gold` names the target, then the first page's links.

The policy opens pages with `<call>open red</call>`, reads their text (`ruby 40 plum 12`) and ends with `<call>answer
12</call>`. The level is the number of links less 1.

Papers: openwebvoyager
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.bundled.keyvalue import KEYS, call
from strop.environments.data.heldout_split import draw, prompt_of, require_level
from strop.environments.format.think_tags import between
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

_MOST_LINKS = 4
_ITEMS = 2  # of one page
_SPARE_TURNS = 1
_LONGEST = 20  # characters of an answer that is read at all


def answered(completion: str) -> str:
    """What a completion answers; empty where it goes on."""
    calls = [text.partition(" ") for text in between(completion, "<call>", "</call>")]
    return next((said.strip() for name, _, said in calls if name == "answer" and len(said) <= _LONGEST), "")


def links_of(task: Task) -> list[str]:
    return prompt_of(task).partition(": ")[2].split()


@dataclass
class PagesEpisode(Episode):
    """Episode of one visit to a site."""

    task: Task = field(init=False, repr=False, compare=False)
    opened: list[str] = field(init=False, repr=False, compare=False)
    turns_left: int = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task, self.opened, self.turns_left = task, [], len(links_of(task)) + 1 + _SPARE_TURNS

    async def step(self, completion: Message) -> Observation:
        self.turns_left -= 1
        if answered(completion.content) or self.turns_left <= 0:
            return Observation(done=True, reward=check_answer(self.task, completion.content))
        calls = between(completion.content, "<call>", "</call>") or [""]
        return Observation((Message("tool", self._page(calls[0])),), done=False, reward=0.0)

    def demonstrate(self) -> Message:
        secret = _secret(self.task)
        if any(secret["find"] in secret["pages"][link].split() for link in self.opened):
            return Message("assistant", call(f"answer {secret['answer']}"))
        return Message("assistant", call(f"open {next(x for x in links_of(self.task) if x not in self.opened)}"))

    def _page(self, text: str) -> str:
        action, _, link = text.partition(" ")
        pages: dict[str, str] = _secret(self.task)["pages"]
        if action != "open" or link not in pages:
            return "error: open LINK or answer NUMBER"
        self.opened.append(link)
        return pages[link]


def check_answer(task: Task, completion: str) -> float:
    return float(answered(completion) == _secret(task)["answer"])


def _secret(task: Task) -> dict[str, Any]:
    secret: dict[str, Any] = json.loads(task.answer)
    return secret


@dataclass(frozen=True)
class TextPages(Environment):
    """Environment of small text sites."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "pages"
    is_inline: ClassVar[bool] = True
    reads_calls: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _MOST_LINKS - 1)

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> PagesEpisode:
        return PagesEpisode()

    def check(self, task: Task, completion: str) -> float:
        return check_answer(task, completion)

    def answer(self, completion: str) -> str:
        return answered(completion)

    def _make(self, stream: random.Random) -> Task:
        count = self.level + 1
        links = stream.sample(KEYS, count)
        items = stream.sample([key for key in KEYS if key not in links], _ITEMS * count)
        prices = {item: str(stream.randrange(10, 100)) for item in items}
        shown = [[f"{item} {prices[item]}" for item in items[at::count]] for at in range(count)]
        pages = {link: " ".join(own) for link, own in zip(links, shown, strict=True)}
        find = stream.choice(items)
        secret = json.dumps({"find": find, "answer": prices[find], "pages": pages})
        prompt = f"find {find}: {' '.join(links)}"
        return Task((Message("user", prompt),), secret, self.name, self.level)
