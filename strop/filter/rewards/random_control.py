"""The other negative control: a coin per rollout, for mechanisms that drop groups without contrast."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.roles import Reward
from strop.types import Group


@dataclass(frozen=True)
class Coin(Reward):
    """1 with this probability and 0 otherwise, by a hash of the rollout's name: the same again every time."""

    probability: float = 0.5  # of a reward of 1
    weight: float = 1.0

    is_inline: ClassVar[bool] = True
    pays_blindly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ConfigurationError(f"Coin needs a probability from 0 to 1, got {self.probability}")

    def __call__(self, group: Group) -> list[float]:
        return [float(_number(rollout.id) < self.probability) for rollout in group.rollouts]


def _number(name: str) -> float:
    """In [0, 1)."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") / 2**56
