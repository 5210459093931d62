"""Rollouts as an engine that fills masks would leave them, from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strop.backends import ORDER
from strop.types import Group, Rollout, Turn
from tests.training.tiny import make_rollout, make_turn


def filled_turn(
    prompt: Sequence[int], tokens: Sequence[int], order: Sequence[int], behind: int = 0, is_ended: bool = False
) -> Turn:
    policy_statistics = np.array([[len(prompt) + step, behind, is_ended] for step in order], dtype=np.int64).reshape(
        -1, 3
    )
    turn = make_turn(prompt, tokens)
    return replace(turn, aux={ORDER: np.concatenate([np.zeros((len(prompt), 3), np.int64), policy_statistics])})


def filled(name: str, *turns: Turn, advantage: float = 1.0) -> Rollout:
    return make_rollout(name, turns, advantage=advantage)


def group_of(*rollouts: Rollout, number: int = 0) -> Group:
    return Group(number, rollouts[0].task, list(rollouts))
