"""Concise reasoning: strop.filter.rewards.graded_answer, strop.recipes.objective.concise_reasoning,
strop.control.samplers.few.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.few import Few
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.scoring import is_inline
from strop.recipes.objective.concise_reasoning import Solvable
from strop.types import Message, Outcome, Task
from tests.building import make_group


def test_right_wrong_and_no_answer() -> None:
    group = make_group([0, 0, 0], turn_rewards=[(1.0,), (0.0,), (0.0,)])
    words = ["<think>1</think>2", "<think>1</think>3", "<think>1 and no end"]
    for rollout, text in zip(group.rollouts, words, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    assert GradedAnswer(Earned())(group) == [1.0, -0.5, -1.0]
    group.rollouts[1].outcome = Outcome.TRUNCATED  # an answer that was cut off is none
    assert GradedAnswer(Earned())(group) == [1.0, -1.0, -1.0]
    assert is_inline(GradedAnswer(Earned())) and not is_inline(GradedAnswer(Checked(())))


def test_tasks_are_chosen_and_not_groups() -> None:
    """Before a task's first success its groups are dropped, after it all are kept, also those that are all wrong."""
    gate, other = Solvable(), Task((Message("user", "?"),), "", "test")
    assert gate(make_group([-0.5, -1.0])).group is None
    assert gate(make_group([1.0, 0.0], failed=[0])).group is None
    for rewards in ([1.0, -0.5], [-0.5, -1.0], [1.0, 1.0]):
        group = make_group(rewards)
        assert gate(group).group is group
    assert gate(replace(make_group([-0.5, -1.0]), task=other)).group is None
    assert gate == Solvable()  # what it has seen is no setting
    again = Solvable()
    again.restore(json.loads(json.dumps(gate.state())))
    assert again(make_group([-0.5, -1.0])).group is not None
    assert again(replace(make_group([-0.5, -1.0]), task=other)).group is None
    assert again(make_group([-0.5], failed=[0])).group is None


def test_a_few_tasks_come_again_and_again() -> None:
    envs = (Arithmetic(1), Arithmetic(2))
    sampler = Few(envs, 2)
    drawn = [sampler.next(0, Counts()).id for _ in range(8)]
    assert drawn[:4] == drawn[4:] and len(set(drawn)) == 4
    again = Few(envs, 2)
    again.restore(sampler.state())
    assert again.next(0, Counts()) == sampler.next(0, Counts())
    with pytest.raises(ConfigurationError, match="count >= 1, got 2 and 0"):
        Few(envs, 0)
