"""Signs of reflection, as a figure and not as pay (MAYE, 2504.02587): who looks again, and is it worth it?

Reading: the release looks for its 15 words anywhere in a text, so that "yet" stands in "poetry"; here they are whole
words. A share of nothing is missing, where the release says 0.
Papers: rl-scaling-vlm
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.success import is_right, paid
from strop.types import Group, Metrics, Trajectory

WORDS = (
    *("re-check", "re-evaluate", "re-examine", "re-think", "recheck", "reevaluate", "reexamine", "reevaluation"),
    *("rethink", "check again", "think again", "try again", "verify", "wait", "yet"),
)


@dataclass(frozen=True)
class Reflects(Reward):
    """1 where a reply of the attempt holds one of the words; without weight it is only counted."""

    words: tuple[str, ...] = WORDS
    weight: float = 0.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = "reflects"

    def __post_init__(self) -> None:
        if not self.words or not all(word.strip() for word in self.words):
            raise ConfigurationError(f"Reflects needs at least 1 word and none that is empty, got {self.words}")

    def __call__(self, group: Group) -> list[float]:
        return [float(bool(self.found(attempt))) for attempt in group.trajectories]

    def found(self, attempt: Trajectory) -> list[str]:
        """The words that occur in what the policy said."""
        said = "\n".join(turn.message.content for turn in attempt.turns).lower()
        # most words are nowhere, which is found out much sooner than where they stand alone
        return [word for word in self.words if word in said and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", said)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """How common each word is, and whether attempts that reflect are right more often; nothing is remembered."""
        attempts = [attempt for group in groups for attempt in group.own]
        found = [self.found(attempt) for attempt in attempts]
        reflects, right = [bool(each) for each in found], [is_right(paid(attempt)) for attempt in attempts]
        shares = {
            "reflecting": _share(reflects, [True] * len(right)),
            "reflecting_of_right": _share(reflects, right),
            "reflecting_of_wrong": _share(reflects, [not each for each in right]),
            "right_of_reflecting": _share(right, reflects),
            "right_of_others": _share(right, [not each for each in reflects]),
        }
        known = {name: share for name, share in shares.items() if share is not None}
        return known | {f"says/{word}": _count(word, found) for word in self.words if _count(word, found)}


def _share(flags: Sequence[bool], among: Sequence[bool]) -> float | None:
    """Of those that are `among`, how many have the flag; None where there is nobody."""
    chosen = [flag for flag, is_among in zip(flags, among, strict=True) if is_among]
    return sum(chosen) / len(chosen) if chosen else None


def _count(word: str, found: Sequence[Sequence[str]]) -> float:
    return float(sum(word in each for each in found))
