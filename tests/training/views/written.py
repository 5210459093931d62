"""Attempts as an engine that fills masks would leave them, from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strop.backends import ORDER
from strop.types import Group, Trajectory, Turn
from tests.training.tiny import make_attempt, make_turn


def filled_turn(
    prompt: Sequence[int], tokens: Sequence[int], order: Sequence[int], behind: int = 0, is_ended: bool = False
) -> Turn:
    notes = np.array([[len(prompt) + step, behind, is_ended] for step in order], dtype=np.int64).reshape(-1, 3)
    turn = make_turn(prompt, tokens)
    return replace(turn, aux={ORDER: np.concatenate([np.zeros((len(prompt), 3), np.int64), notes])})


def filled(name: str, *turns: Turn, advantage: float = 1.0) -> Trajectory:
    return make_attempt(name, turns, advantage=advantage)


def group_of(*attempts: Trajectory, number: int = 0) -> Group:
    return Group(number, attempts[0].task, list(attempts))
