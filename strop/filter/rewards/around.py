"""Reward that shapes another one, and runs where that one runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from strop.roles import Reward


@dataclass(frozen=True)
class AroundReward(Reward):
    """Reward computed from the scores of reward `inner` for all rollouts of a group."""

    inner: Reward
    weight: float = 1.0  # of this reward beside others

    is_relative: ClassVar[bool] = True

    @property
    def is_inline(self) -> bool:
        return self.inner.is_inline
