"""Small mechanisms for tests, importable by name so that a run's recipe.py can name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward
from strop.types import ZERO_TO_ONE, Group, ScoreRange


@dataclass(frozen=True)
class LongerIsBetter(Reward):
    """Pays for length, which even a random model can learn."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    pays_blindly: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [t.num_tokens / 16 for t in group.rollouts]


@dataclass(frozen=True)
class EvenLength(Reward):
    """Pays for an even number of tokens; runs in a worker process."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    pays_blindly: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(t.num_tokens % 2 == 0) for t in group.rollouts]


@dataclass(frozen=True)
class EvenOrOdd(Reward):
    """Right (1) where the first token is even, wrong (0) where it is odd: contrast even among rollouts cut short."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    pays_blindly: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        return [float(int(t.turns[0].tokens[0]) % 2 == 0) for t in group.rollouts]


@dataclass(frozen=True)
class EvenSum(Reward):
    """Right (1) where the numbers of all tokens of the completions, given ones too, add up to an even one."""

    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    weight: float = 1.0
    pays_blindly: ClassVar[bool] = True
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        sums = [sum(int(turn.whole.sum()) for turn in t.turns) for t in group.rollouts]
        return [float(total % 2 == 0) for total in sums]
