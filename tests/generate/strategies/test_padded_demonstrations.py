"""Demonstrations whose canvas is full of ends.

Papers: d1
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from strop.errors import ConfigurationError
from strop.generate.strategies.padded_demonstrations import Padded
from strop.roles import Strategy
from strop.types import Group, Rollout, Start
from tests.training.tiny import make_rollout, make_turn


@dataclass(frozen=True)
class _Given(Strategy):
    rollouts: tuple[Rollout, ...]

    async def __call__(self, group: Group, starts: Sequence[Start], play: Any) -> list[Rollout]:
        return list(self.rollouts)


def test_the_last_completion_goes_on_with_its_last_token() -> None:
    two = make_rollout("a", (make_turn([8], [1]), make_turn([5], [6, 7, 1])))
    others = (make_rollout("b", (make_turn([8], [2, 3, 4, 5, 6, 7]),)), make_rollout("c", (make_turn([9], []),)))
    nobody: Any = None
    found, *rest = asyncio.run(Padded(_Given((two, *others)), 5)(nobody, (), nobody))
    assert [turn.tokens.tolist() for turn in found.turns] == [[1], [6, 7, 1, 1, 1]]
    assert found.turns[1].versions.tolist() == [0, 0, 0, -1, -1] and found.turns[1].logprobs[3:].tolist() == [0, 0]
    assert [turn.prompt.tolist() for turn in found.turns] == [[8], [5]] and found.id == "a"
    assert [each.turns[0].tokens.tolist() for each in rest] == [[2, 3, 4, 5, 6, 7], []]


def test_a_canvas_has_places() -> None:
    with pytest.raises(ConfigurationError, match="size >= 1"):
        Padded(_Given(()), 0)
