"""Advantage along the steps in which a canvas was filled, against numbers worked by hand.

Papers: tracerl
"""

from __future__ import annotations

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.training.advantages.trace_returns import TraceReturns, steps_of
from strop.types import Outcome, Rollout
from tests.training.tiny import make_turn
from tests.training.views.written import filled, filled_turn, group_of


def worse() -> Rollout:
    """One that was paid nothing: beside it a reward of any size is 1 once it is standardised, and its own -1."""
    it = filled("worse", filled_turn([3], [5], [1]))
    it.values = np.zeros(1, np.float32)
    return it


def rollout(reward: float = 1.0) -> Rollout:
    """Steps (0, 1, 0, 2) and values (.2, .4, .4, .6)."""
    it = filled("a", filled_turn([3], [5, 6, 7, 8], [1, 2, 1, 3]))
    it.reward, it.values = reward, np.array([0.2, 0.4, 0.4, 0.6], np.float32)
    return it


@pytest.mark.parametrize(
    ("discount", "trace", "expected"),
    [
        (1.0, 1.0, [0.8, 0.6, 0.6, 0.4]),  # what came minus what was expected
        (1.0, 0.0, [0.2, 0.2, 0.0, 0.4]),  # what the next step is worth minus what was expected
        (0.9, 0.5, [0.304, 0.32, 0.104, 0.4]),
    ],
)
def test_numbers_of_the_card(discount: float, trace: float, expected: list[float]) -> None:
    it = rollout()
    other = worse()
    TraceReturns(discount, trace, merged=1)([group_of(it, other)])
    assert other.advantages == pytest.approx([-1.0])
    assert it.advantages == pytest.approx(expected)


def test_returns_are_discounted_by_steps_and_not_by_tokens() -> None:
    it = rollout(reward=2.0)
    TraceReturns(0.5, 1.0, merged=1)([group_of(it, worse())])
    assert it.returns == pytest.approx([0.25, 0.5, 0.25, 1.0])  # two, one and no step before the last


def test_a_step_of_several_tokens_speaks_with_their_mean() -> None:
    """Steps (0, 1, 1): A of step 1 is the mean of 1 - .2 and 1 - .6; token 0 gets 0 - .5 + (.4 + .5 * .6)."""
    it = filled("a", filled_turn([3], [5, 6, 7], [1, 2, 2]))
    it.reward, it.values = 1.0, np.array([0.5, 0.2, 0.6], np.float32)
    TraceReturns(1.0, 0.5, merged=1)([group_of(it, worse())])
    assert it.advantages == pytest.approx([0.2, 0.8, 0.4])
    assert it.returns == pytest.approx([1.0, 1.0, 1.0])


def test_merged_steps_are_one_and_turns_follow_each_other() -> None:
    first, second = filled_turn([3], [5, 6, 7], [3, 1, 2]), filled_turn([4, 4], [8, 9], [2, 1])
    it = filled("a", first, make_turn([3], [6, 6]), second)
    assert steps_of(it, 1).tolist() == [2, 0, 1, 3, 3, 5, 4]
    assert steps_of(it, 2).tolist() == [1, 0, 0, 2, 2, 3, 3]
    assert steps_of(it, 8).tolist() == [0, 0, 0, 1, 1, 2, 2]
    it.reward, it.values = 1.0, np.zeros(7, np.float32)
    TraceReturns(0.5, 1.0, merged=8)([group_of(it, worse())])
    assert it.advantages == pytest.approx([0.25, 0.25, 0.25, 0.5, 0.5, 1.0, 1.0])


def test_failed_rollouts_and_empty_ones() -> None:
    failed, empty, whole = rollout(), filled("b", make_turn([3], [])), rollout()
    failed.outcome, failed.values, failed.advantages = Outcome.FAILED, None, None
    empty.values = np.zeros(0, np.float32)
    failed.reward = 9.0  # which is no part of the group's mean
    TraceReturns(merged=1)([group_of(failed, empty, whole)])
    assert failed.advantages is None and empty.advantages is not None and len(empty.advantages) == 0
    assert whole.advantages == pytest.approx([0.8, 0.6, 0.6, 0.4])


def test_rewards_are_standardised_within_their_group() -> None:
    """(3, 1, 1, 1): mean 1.5, deviation sqrt(.75); all alike: nothing."""
    rollouts = [rollout(reward) for reward in (3.0, 1.0, 1.0, 1.0)]
    for it in rollouts:
        it.values = np.zeros(4, np.float32)
    TraceReturns(merged=1)([group_of(*rollouts)])
    assert [float(it.advantages[0]) for it in rollouts if it.advantages is not None] == pytest.approx(
        [1.5 / 0.75**0.5, *[-0.5 / 0.75**0.5] * 3]
    )
    same = [rollout(1.0), rollout(1.0)]
    TraceReturns(merged=1)([group_of(*same)])
    assert same[0].advantages == pytest.approx([-0.2, -0.4, -0.4, -0.6])


def test_what_it_refuses() -> None:
    it = rollout()
    it.values = None
    with pytest.raises(ConfigurationError, match="add CanvasCritic"):
        TraceReturns()([group_of(it)])
    for fields in ({"merged": 0}, {"discount": 1.5}, {"trace": -0.1}):
        with pytest.raises(ConfigurationError, match="TraceReturns needs"):
            TraceReturns(**fields)  # type: ignore[arg-type]
