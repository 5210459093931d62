"""Small configurations of reasoning-gym datasets (Open-Thought) for small models, with a worked solution per task.

Answers are a single number or string, so the environment rewards directly and needs no scorer of the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from strop.environments.data.heldout_split import require_level
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError, nearest
from strop.roles import Environment
from strop.types import Task

_OPEN, _CLOSE = "<answer>", "</answer>"
_HIGHEST = 3


def tagged(completion: str) -> str:
    """What stands between the last answer tags; nothing where they are not both there."""
    _, opened, after = completion.rpartition(_OPEN)
    answer, closed, _ = after.partition(_CLOSE)
    return answer.strip() if opened and closed else ""


def _chain_sum(item: Mapping[str, Any]) -> list[str]:
    """Add from left to right."""
    first, *rest = item["expression"].split()
    total, steps = int(first), []
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        result = total + int(term) if sign == "+" else total - int(term)
        steps.append(f"{total} {sign} {term} = {result}")
        total = result
    return steps


def _products(item: Mapping[str, Any]) -> list[str]:
    """One product per digit of the second factor, then their sum."""
    one, other = map(int, item["expression"].split(" * "))
    places = enumerate(reversed(str(other)))
    parts = [int(digit) * 10**place for place, digit in places if digit != "0"][::-1] or [0]
    steps = [f"{one} * {part} = {one * part}" for part in parts]
    total = one * parts[0]
    for part in parts[1:]:
        steps.append(f"{total} + {one * part} = {total + one * part}")
        total += one * part
    return steps


def _gcd(item: Mapping[str, Any]) -> list[str]:
    """Euclid's algorithm."""
    steps = []
    large, small = sorted(item["numbers"], reverse=True)
    while small:
        steps.append(f"{large} % {small} = {large % small}")
        large, small = small, large % small
    return steps


def _letter_counting(item: Mapping[str, Any]) -> list[str]:
    """Every word letter by letter, with the count so far."""
    count, steps = 0, []
    for word in item["span"]:
        count += word.lower().count(item["target_letter"].lower())
        steps.append(f"{' '.join(word)}: {count}")
    return steps


def _spell_backward(item: Mapping[str, Any]) -> list[str]:
    """The letters one by one, forward and back."""
    return [" ".join(item["word"]), " ".join(reversed(item["word"]))]


def _leg_counting(item: Mapping[str, Any]) -> list[str]:
    """Legs of each kind, then their sum."""
    from reasoning_gym.arithmetic.leg_counting import ANIMALS

    legs = [(count, ANIMALS[animal]) for animal, count in item["animals"].items()]
    steps = [f"{count} * {each} = {count * each}" for count, each in legs]
    total = math.prod(legs[0])
    for count, each in legs[1:]:
        steps.append(f"{total} + {count * each} = {total + count * each}")
        total += count * each
    return steps


WORKINGS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "chain_sum": _chain_sum,
    "products": _products,
    "gcd": _gcd,
    "letter_counting": _letter_counting,
    "spell_backward": _spell_backward,
    "leg_counting": _leg_counting,
}

# by dataset and level from 1 to 3; the last three have no worked solution and only their answer is shown
SETTINGS: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "chain_sum": (
        {"min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 2},
        {"min_terms": 3, "max_terms": 4, "min_digits": 2, "max_digits": 2},
        {"min_terms": 4, "max_terms": 5, "min_digits": 2, "max_digits": 3},
    ),
    "products": (
        {"min_digits": 1, "max_digits": 2},
        {"min_digits": 2, "max_digits": 2},
        {"min_digits": 2, "max_digits": 3},
    ),
    "gcd": tuple({"min_value": 2, "max_value": most} for most in (50, 100, 300)),
    "letter_counting": tuple({"min_words": low, "max_words": high} for low, high in ((2, 3), (3, 5), (5, 8))),
    "spell_backward": tuple({"min_word_len": low, "max_word_len": high} for low, high in ((3, 6), (5, 8), (7, 10))),
    "leg_counting": tuple(
        {"min_animals": low, "max_animals": high, "max_instances": most}
        for low, high, most in ((2, 2, 5), (2, 3, 10), (3, 4, 15))
    ),
    "basic_arithmetic": tuple(
        {"min_terms": 2, "max_terms": terms, "min_digits": 1, "max_digits": digits}
        for terms, digits in ((2, 1), (3, 2), (4, 2))
    ),
    "lcm": tuple({"min_value": 2, "max_value": most} for most in (12, 30, 60)),
    "word_sequence_reversal": tuple({"min_words": low, "max_words": high} for low, high in ((2, 3), (3, 5), (5, 8))),
}


@dataclass(frozen=True)
class Drill(Environment):
    """Tasks of one dataset at one of three levels."""

    dataset: str
    level: int = 1
    seed: int = 0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dataset not in SETTINGS:
            raise ConfigurationError(f"there is no drill {self.dataset!r}: {nearest(self.dataset, SETTINGS)}")
        require_level(self.name, self.level, 1, _HIGHEST)

    @property
    def name(self) -> str:
        return f"drill/{self.dataset}"

    def task(self, index: int, heldout: bool = False) -> Task:
        if not heldout:
            return self._make(index, heldout)
        if index not in self._heldout:  # one in ten items is: worth keeping, for they are asked for again and again
            self._heldout[index] = self._make(index, heldout)
        return self._heldout[index]

    def episode(self) -> SingleTurn:
        return SingleTurn(self)

    def check(self, task: Task, completion: str) -> float:
        return float(tagged(completion) == task.answer)

    def answer(self, completion: str) -> str:
        return tagged(completion)

    def solution(self, task: Task) -> str:
        working = WORKINGS.get(self.dataset)
        steps = working(self._gym.item(task)["metadata"]) if working else []
        return "\n".join([*steps, f"{_OPEN}{task.answer}{_CLOSE}"])

    def __getstate__(self) -> dict[str, Any]:
        return {kept.name: getattr(self, kept.name) for kept in fields(self)}

    def _make(self, index: int, heldout: bool) -> Task:
        found = self._gym.task(index, heldout)
        return Task(found.messages, found.answer, self.name, self.level, found.id)

    @cached_property
    def _heldout(self) -> dict[int, Task]:
        return {}

    @cached_property
    def _gym(self) -> ReasoningGym:
        # these datasets draw each item by itself and take long to create: one chunk is enough
        return ReasoningGym(self.dataset, self.seed, config=SETTINGS[self.dataset][self.level - 1], chunk=2**30)
