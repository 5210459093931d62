"""Pessimism by hand in two dimensions, and with a reward model whose states are known."""

from __future__ import annotations

import asyncio
import ctypes
import re
from collections.abc import Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.judging.preferences import Preferences, completions_of
from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid
from strop.filter.rewards.reward_model import Scored
from strop.recipes.reward.principled_rlhf import Pessimistic, pessimistic, precision
from strop.roles import Reward
from strop.types import Group, Message
from tests.building import make_group


def test_the_penalty_by_hand() -> None:
    """Differences (2, 0) and (0, 1): Sigma = diag(2, 1/2), with ridge 1/2 diag(5/2, 1); v = (5, 2): sqrt(10 + 4)."""
    inverse = precision(np.array([[2.0, 0.0], [0.0, 1.0]]), ridge=0.5)
    assert inverse == pytest.approx(np.diag([0.4, 1.0]))
    away, direction = np.array([[5.0, 2.0], [0.0, 0.0]]), np.array([1.0, -2.0])
    assert pessimistic(away, direction, inverse, 0.5) == pytest.approx([1.0 - 0.5 * 14**0.5, 0.0])
    assert pessimistic(away, direction, inverse, 0.0) == [1.0, 0.0], "without a bound it is the score"


def test_what_no_pair_says_anything_about_is_trusted_least() -> None:
    """All pairs differ along the first axis: as far along the second, a completion loses more."""
    inverse = precision(np.array([[1.0, 0.0]] * 3), ridge=0.1)
    near, far = pessimistic(np.eye(2), np.array([1.0, 1.0]), inverse, 1.0)
    assert near == pytest.approx(1 - 1.1**-0.5) and far == pytest.approx(1 - 0.1**-0.5)


class Lengths:
    """A reward model with two features: the lengths of question and completion."""

    direction = np.array([0.0, 1.0])

    def states(self, asked: Sequence[tuple[Sequence[Message], str]]) -> NDArray[np.float64]:
        return np.array(
            [[len(messages[0].content), len(completion)] for messages, completion in asked], dtype=np.float64
        )


async def scored(reward: Reward, group: Group) -> Sequence[float | Paid]:
    told = reward(group)
    try:
        return await told if isawaitable(told) else told
    finally:
        await reward.close()  # type: ignore[attr-defined]


class Threads:
    """A reward model whose score is how many threads a product of matrices would start: torch's own count is shared."""

    direction = np.array([1.0])

    def states(self, asked: Sequence[tuple[Sequence[Message], str]]) -> NDArray[np.float64]:
        return np.array([[each] for each in self.scores(asked)])

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        return [float(OPENMP.omp_get_max_threads()) for _ in asked]


LOADED = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "omp" in line.split()[-1]}
OPENMP = ctypes.CDLL(min(path for path in LOADED if re.search(r"/lib[gi]?omp", path)))


def test_it_computes_with_as_many_threads_as_the_run() -> None:
    """Bits depend on the number; a new thread has as many as the machine has cores, or its episode says."""
    model: Any = Threads()
    before = torch.get_num_threads()
    careful = Pessimistic(model, (Preferences(Arithmetic(2), (("grounded", 1.0),)),), bound=0.0, pairs=2)
    careful.open_resources()
    torch.set_num_threads(before + 2)
    try:
        assert asyncio.run(scored(Scored(model), make_group([0.0]))) == [before + 2]
        assert asyncio.run(scored(careful, make_group([0.0]))) == [2], "from the mean of its pairs"
    finally:
        torch.set_num_threads(before)


def test_features_are_measured_from_the_mean_of_the_pairs() -> None:
    model: Any = Lengths()
    reward = Pessimistic(model, (Preferences(Arithmetic(2), (("grounded", 1.0),)),), bound=0.0, pairs=8)
    with pytest.raises(ConfigurationError, match="call open"):
        reward._scores([])
    reward.open_resources()
    tasks = [reward.envs[0].task(index) for index in range(8)]
    mean = sum(len(completion) for task in tasks for completion in completions_of(task)) / 16
    group = make_group([0.0])
    assert asyncio.run(scored(reward, group)) == pytest.approx([1 - mean])
    model.states = lambda asked: np.array([[0.0, 4.0], [0.0, 2.0], [np.nan] * 2, [0.0, 9.0]])
    reward.open_resources()
    assert reward._known is not None and reward._known[0].tolist() == [0.0, 3.0], "what cannot be read says nothing"
    assert reward._known[1].tolist() == pytest.approx(np.diag([10.0, 1 / 4.1]))
    model.states = lambda asked: np.full((2, 2), np.nan)
    with pytest.raises(ConfigurationError, match="none of 1 pairs fits"):
        reward.open_resources()
    for wrong in ({"bound": -1.0}, {"ridge": 0.0}, {"pairs": 0}):
        with pytest.raises(ConfigurationError, match="bound >= 0, ridge > 0 and pairs >= 1"):
            Pessimistic(model, reward.envs, **wrong)  # type: ignore[arg-type]
