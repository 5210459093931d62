"""Concise reasoning: strop.filter.rewards.graded_answer, strop.filter.gates.solvable, strop.control.samplers.few."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strop.control.samplers.few import Few
from strop.environments.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.gates.solvable import Solvable
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.types import Message
from tests.building import make_group


def test_right_wrong_and_no_answer() -> None:
    group = make_group([0, 0, 0], turn_rewards=[(1.0,), (0.0,), (0.0,)])
    words = ["<think>1</think>2", "<think>1</think>3", "<think>1 and no end"]
    for attempt, text in zip(group.trajectories, words, strict=True):
        attempt.turns = (replace(attempt.turns[0], message=Message("assistant", text)),)
    assert GradedAnswer()(group) == [1.0, -0.5, -1.0]


def test_unsolved_groups_are_dropped_and_all_others_kept_whole() -> None:
    assert Solvable()(make_group([-0.5, -1.0])).group is None
    for rewards in ([1.0, -0.5], [1.0, 1.0]):
        group = make_group(rewards)
        assert Solvable()(group).group is group
    assert Solvable()(make_group([1.0, 0.0], failed=[0])).group is None


def test_a_few_tasks_come_again_and_again() -> None:
    worlds = (Arithmetic(1), Arithmetic(2))
    sampler = Few(worlds, 2)
    drawn = [sampler.next().id for _ in range(8)]
    assert drawn[:4] == drawn[4:] and len(set(drawn)) == 4
    again = Few(worlds, 2)
    again.restore(sampler.state())
    assert again.next() == sampler.next()
    with pytest.raises(ConfigurationError, match="count >= 1, got 2 and 0"):
        Few(worlds, 0)
