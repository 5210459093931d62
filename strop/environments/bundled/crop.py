"""Visual grounding in two turns (MGPO, 2507.05920): the policy crops a box from a downsampled image, then answers.

    digit at c?                 prompt, with the view: a character for each block of the original
    a.b
    .c.
    ..d
    [1,1,2,2]                   first completion, a box: left, top, right, bottom
    ..                          observation: that part of the original
    .7
    7                           second completion, the answer

An image is a grid of characters. A letter of the view stands for a block of the original that contains one digit. The
second completion is always the answer, whatever the box shows, and it alone is rewarded. A crop with more characters
than the view is downsampled to the view's size. The level is the side of a block less 1.

Reading: a box of one character is large enough; the release wants more than 28 pixels a side.

Papers: mgpo
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from strop.environments.data.heldout_split import draw, require_level
from strop.environments.format.think_tags import final_number
from strop.roles import Environment, Episode
from strop.types import Message, Observation, Task

Box: TypeAlias = tuple[int, int, int, int]  # left, top, right, bottom; the last two just outside

SIDE = 3  # characters of a view, each way
INVALID = "error: invalid coordinates"
_LETTERS = "abcd"
_ASPECT = 100  # a box is less than so many times as long as it is wide
_BOX = re.compile(r"\[(\d{1,4}),(\d{1,4}),(\d{1,4}),(\d{1,4})\]")


def box_in(completion: str) -> Box | None:
    """The first box that a completion names."""
    found = _BOX.search(completion)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]), int(found[4]))


def is_valid(box: Box, width: int, height: int, least: int = 0) -> bool:
    """Within the view, more than `least` each way, and not too narrow."""
    left, top, right, bottom = box
    short, long = sorted((right - left, bottom - top))
    return right <= width and bottom <= height and short > max(least, 0) and long < _ASPECT * short


def in_original(box: Box, view: tuple[int, int], original: tuple[int, int]) -> Box:
    """The same part of the original, both of whose sizes are width and height."""
    left, top, right, bottom = box
    (width, height), (across, down) = view, original
    return left * across // width, top * down // height, right * across // width, bottom * down // height


def cut_out(image: list[str], box: Box) -> str:
    left, top, right, bottom = box
    return "\n".join(row[left:right] for row in image[top:bottom])


@dataclass
class CropEpisode(Episode):
    """Episode of one crop, then the answer."""

    task: Task = field(init=False, repr=False, compare=False)
    has_looked: bool = field(init=False, repr=False, compare=False)

    async def reset(self, task: Task) -> None:
        self.task, self.has_looked = task, False

    async def step(self, completion: Message) -> Observation:
        if self.has_looked:
            return Observation(done=True, reward=check_digit(self.task, completion.content))
        self.has_looked = True
        return Observation((Message("tool", self._seen(box_in(completion.content))),), done=False, reward=0.0)

    def demonstrate(self) -> Message:
        secret = _secret(self.task)
        if self.has_looked:
            return Message("assistant", secret["digit"])
        left, top = next(
            (row.index(secret["letter"]), at) for at, row in enumerate(secret["view"]) if secret["letter"] in row
        )
        return Message("assistant", f"[{left},{top},{left + 1},{top + 1}]")

    def _seen(self, box: Box | None) -> str:
        """The crop, or the whole view again where there is none."""
        view, original = _secret(self.task)["view"], _secret(self.task)["original"]
        if box is None or not is_valid(box, SIDE, SIDE):
            return "\n".join([INVALID, *view])
        crop = cut_out(original, in_original(box, (SIDE, SIDE), (len(original[0]), len(original))))
        return crop if len(crop.replace("\n", "")) <= SIDE * SIDE else cut_out(view, box)


def check_digit(task: Task, completion: str) -> float:
    return float(final_number(completion) == _secret(task)["digit"])


def _secret(task: Task) -> dict[str, Any]:
    secret: dict[str, Any] = json.loads(task.answer)
    return secret


@dataclass(frozen=True)
class Crop(Environment):
    """Environment of character images that are seen through crops."""

    level: int
    seed: int = 0
    name: ClassVar[str] = "crop"
    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_level(self.name, self.level, 1, SIDE - 1)  # more than SIDE each way is more than a crop shows

    def task(self, index: int, heldout: bool = False) -> Task:
        return draw(f"{self.name}/{self.seed}/{self.level}/{index}", heldout, self._make)

    def episode(self) -> CropEpisode:
        return CropEpisode()

    def check(self, task: Task, completion: str) -> float:
        return check_digit(task, completion)

    def answer(self, completion: str) -> str:
        return final_number(completion)

    def _make(self, stream: random.Random) -> Task:
        block = self.level + 1
        view = [["."] * SIDE for _ in range(SIDE)]
        original = [["."] * (SIDE * block) for _ in range(SIDE * block)]
        digits = {letter: str(stream.randrange(10)) for letter in _LETTERS}
        for letter, place in zip(_LETTERS, stream.sample(range(SIDE * SIDE), len(_LETTERS)), strict=True):
            top, left = divmod(place, SIDE)
            view[top][left] = letter
            down, across = top * block + stream.randrange(block), left * block + stream.randrange(block)
            original[down][across] = digits[letter]
        letter = stream.choice(_LETTERS)
        shown = ["".join(row) for row in view]
        secret = {"letter": letter, "digit": digits[letter], "view": shown, "original": ["".join(r) for r in original]}
        prompt = "\n".join([f"digit at {letter}?", *shown])
        return Task((Message("user", prompt),), json.dumps(secret), self.name, self.level)
