"""Multiple-choice version of any environment (Curr-ReFT's second stage, 2503.07065).

Reading: one option is right, the others are answers of other tasks of the same environment. The letters of a completion
count as a set, all or nothing: with m options, guessing any set earns 1 / (2^m - 1).

Papers: curr-reft
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import islice

from strop.environments.format.think_tags import final_answer
from strop.environments.judging.easier_question import Easier, asked, wrong_answers
from strop.errors import ConfigurationError
from strop.types import Task

_LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Choice(Easier):
    """Multiple-choice environment: to `47+12=? a 61 b 59 c 83 d 40` the right completion is b."""

    options: int = 4  # of which one is right

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.options <= len(_LETTERS):
            raise ConfigurationError(f"Choice needs 2 to {len(_LETTERS)} options, got {self.options}")

    @property
    def name(self) -> str:
        return f"choice-{self.env.name}"

    def task(self, index: int, heldout: bool = False) -> Task:
        inner = self.env.task(index, heldout)
        shown = [*islice(wrong_answers(self.env, index, heldout), self.options - 1)]
        place = random.Random(f"choice/{inner.id}").randrange(self.options)
        shown.insert(place, inner.answer)
        listed = " ".join(f"{letter} {each}" for letter, each in zip(_LETTERS, shown, strict=False))
        return asked(inner, listed, _LETTERS[place], self.name)

    def answer(self, completion: str) -> str:
        """The letters that stand alone, each once, in their order; empty where anything else stands there."""
        said = set(final_answer(completion).replace(",", " ").split())
        return "".join(sorted(said)) if said <= set(_LETTERS[: self.options]) else ""
