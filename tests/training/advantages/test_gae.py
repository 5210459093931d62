from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.training.advantages.gae import Gae
from strop.types import FloatArray, Group, Rollout
from tests.building import make_group


def valued(rewards: list[float], values: list[list[float]], failed: tuple[int, ...] = ()) -> Group:
    group = make_group(rewards, [len(v) for v in values], failed, turn_rewards=[(r,) for r in rewards])
    for rollout, numbers in zip(group.rollouts, values, strict=True):
        rollout.values = np.array(numbers, dtype=np.float32)
    return group


def advantage(rollout: Rollout) -> tuple[FloatArray, FloatArray]:
    assert rollout.advantages is not None and rollout.returns is not None
    assert rollout.advantages.dtype == rollout.returns.dtype == np.float32
    return rollout.advantages, rollout.returns


def test_by_hand() -> None:
    # V = (.5, .4, .6), reward 1 at the end: delta = (.4 - .5, .6 - .4, 1 - .6) = (-.1, .2, .4).
    # trace .5: A = (.4 -> .2 + .5 * .4 = .4 -> -.1 + .5 * .4 = .1), returns A + V = (.6, .8, 1).
    # The environment's turn reward of 1 is the reward: counted once.
    group = valued([1.0], [[0.5, 0.4, 0.6]])
    Gae(trace=0.5, whiten=False)([group])
    advantages, returns = advantage(group.rollouts[0])
    assert advantages.tolist() == pytest.approx([0.1, 0.4, 0.4], abs=1e-6)
    assert returns.tolist() == pytest.approx([0.6, 0.8, 1.0], abs=1e-6)


def test_discount_by_hand() -> None:
    # discount .9, trace .5: delta = (.9 * .4 - .5, .9 * .6 - .4, 1 - .6) = (-.14, .14, .4); factor .45:
    # A = (.4, .14 + .18 = .32, -.14 + .144 = .004).
    group = valued([1.0], [[0.5, 0.4, 0.6]])
    Gae(discount=0.9, trace=0.5, whiten=False)([group])
    assert advantage(group.rollouts[0])[0].tolist() == pytest.approx([0.004, 0.32, 0.4], abs=1e-6)


def test_trace_one_is_reward_minus_value_and_trace_zero_is_one_step() -> None:
    group = valued([1.0, 0.0], [[0.5, 0.4, 0.6], [0.3]])
    Gae(trace=1.0, whiten=False)([group])
    assert advantage(group.rollouts[0])[0].tolist() == pytest.approx([0.5, 0.6, 0.4], abs=1e-6)
    assert advantage(group.rollouts[0])[1].tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)
    assert advantage(group.rollouts[1])[0].tolist() == pytest.approx([-0.3], abs=1e-6)
    Gae(trace=0.0, whiten=False)([group])
    assert advantage(group.rollouts[0])[0].tolist() == pytest.approx([-0.1, 0.2, 0.4], abs=1e-6)


def test_whitening_is_over_the_draw_and_leaves_returns_alone() -> None:
    # A = (.1, .4, .4): mean .3, population std sqrt(.02) = .1414214 -> (-1.4142136, .7071068, .7071068).
    group = valued([1.0], [[0.5, 0.4, 0.6]])
    Gae(trace=0.5)([group])
    advantages, returns = advantage(group.rollouts[0])
    assert advantages.tolist() == pytest.approx([-1.4142136, 0.7071068, 0.7071068], abs=1e-5)
    assert returns.tolist() == pytest.approx([0.6, 0.8, 1.0], abs=1e-6)


def test_failed_rollouts_are_skipped_and_need_no_values() -> None:
    group = valued([1.0, 7.0], [[0.5], [0.0]], failed=(1,))
    group.rollouts[1].values = None
    Gae(whiten=False)([group])
    assert advantage(group.rollouts[0])[0].tolist() == [0.5]
    assert group.rollouts[1].advantages is None and group.rollouts[1].returns is None


def test_refuses_missing_values() -> None:
    group = valued([1.0], [[0.5, 0.5]])
    group.rollouts[0].values = np.zeros(1, dtype=np.float32)
    with pytest.raises(ConfigurationError, match="2 tokens, got 1"):
        Gae()([group])
    group.rollouts[0].values = None
    with pytest.raises(ConfigurationError, match="got none"):
        Gae()([group])


@given(
    values=st.lists(st.lists(st.floats(-100, 100, width=32), max_size=4), max_size=4),
    reward=st.floats(-100, 100, width=32),
)
def test_is_finite_for_empty_rollouts_and_equal_values(values: list[list[float]], reward: float) -> None:
    group = valued([reward] * len(values), values)
    Gae()([group])
    for rollout in group.rollouts:
        assert all(np.isfinite(numbers).all() and len(numbers) == rollout.num_tokens for numbers in advantage(rollout))
