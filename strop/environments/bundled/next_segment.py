"""Next-segment prediction on plain text (RLPT, 2509.19249); level 1 shows the text before, level 2 also the text after.

Reading: a prediction is right when its words begin the text that follows and hold its next sentence whole; a shorter
one would be right by saying little. Without a file, texts are sums added up sentence by sentence. All of a text is on
one side of the split, and a text that occurs twice is one.
Papers: rlpt
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.data.heldout_split import is_heldout, require_level
from strop.environments.format.think_tags import final_answer, sum_steps, think
from strop.environments.single_turn import SingleTurn
from strop.errors import DataError
from strop.roles import Environment
from strop.types import FilePath, Message, Task

_SHORTEST = 4  # characters of a sentence; what is shorter is dropped
_END = re.compile(r"(?<=[.!?])\s+")
_BETWEEN = 2  # the level at which the sentence after the missing one is shown


@dataclass(frozen=True)
class NextSegment(Environment):
    """Next-segment environment: after `4+7+3. 4+7=11. next?` the right completion is 11+3=14."""

    level: int
    seed: int = 0
    path: FilePath = ""  # a text file, texts separated by empty lines; empty: sums without end

    name: ClassVar[str] = "next_segment"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, _BETWEEN)

    def task(self, index: int, heldout: bool = False) -> Task:
        if self.path:
            places = self._places(heldout)
            text, place = places[index % len(places)]
            return self._asked(sentences(text), place)
        stream = random.Random(f"{self.name}/{self.seed}/{self.level}/{index}/{heldout}")
        while is_heldout(text := _sum_told(stream)) != heldout:
            pass
        told = sentences(text)
        return self._asked(told, stream.randrange(1, self._last(told)))

    def num_tasks(self, heldout: bool = False) -> int | None:
        return len(self._places(heldout)) if self.path else None

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        secret = json.loads(task.answer)
        return float(continues(final_answer(completion), secret["next"], secret["after"]))

    def answer(self, completion: str) -> str:
        return " ".join(_words(final_answer(completion)))

    def solution(self, task: Task) -> str:
        """A sum is worked out before it is said; of a text of others nothing is known but how it goes on."""
        following = str(json.loads(task.answer)["next"])
        return following if self.path else think([following.rstrip(".")], following)

    def _last(self, told: Sequence[str]) -> int:
        """How many sentences can be asked for, the first included; at level 2 one must follow."""
        return len(told) - (self.level == _BETWEEN)

    def _asked(self, told: Sequence[str], place: int) -> Task:
        before, after = " ".join(told[:place]), list(told[place + 1 :])
        shown = f"{before} ... {after[0]} between?" if self.level == _BETWEEN else f"{before} next?"
        secret = json.dumps({"next": told[place], "after": " ".join(after)})
        return Task((Message("user", shown),), secret, self.name, self.level)

    def _places(self, heldout: bool) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = self._file[heldout]
        if not found:
            side = "held-out" if heldout else "train"
            raise DataError(f"{self.path} has no {side} text with a sentence to ask for: add longer texts")
        return found

    @cached_property
    def _file(self) -> dict[bool, list[tuple[str, int]]]:
        path = Path(self.path)
        if not path.is_file():
            raise DataError(f"{path} does not exist")
        texts = dict.fromkeys(" ".join(part.split()) for part in path.read_text().split("\n\n"))
        places = [(text, place) for text in texts for place in range(1, self._last(sentences(text)))]
        return {side: [each for each in places if is_heldout(each[0]) == side] for side in (False, True)}

    def __getstate__(self) -> dict[str, Any]:
        return {"level": self.level, "seed": self.seed, "path": self.path}  # texts are read again where needed


def sentences(text: str) -> list[str]:
    """A text cut behind its points; what is too short to be a sentence is dropped."""
    return [each for each in _END.split(text.strip()) if len(each) >= _SHORTEST]


def continues(said: str, following: str, after: str) -> bool:
    """Whether words begin the text that follows, and hold its next sentence whole; nothing at all does not."""
    words, least, most = _words(said), _words(following), _words(f"{following} {after}")
    return bool(words) and len(words) >= len(least) and words == most[: len(words)]


def _words(text: str) -> list[str]:
    """In one spelling, without the punctuation that ends sentences."""
    return [word.rstrip(".!?,;").lower() for word in text.split()]


def _sum_told(stream: random.Random) -> str:
    terms = [stream.randrange(1, 10) for _ in range(stream.randint(4, 5))]
    return " ".join(f"{each}." for each in ("+".join(map(str, terms)), *sum_steps(terms)[0]))
