"""GroupStandard, GroupMean and LeaveOneOut against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.roles import Advantage
from strop.training.advantages.group_relative import GroupMean, GroupStandard, LeaveOneOut
from tests.building import advantages_of, make_group

GROUP_RELATIVE: list[Advantage] = [GroupStandard(), GroupMean(), LeaveOneOut()]


def test_group_standard() -> None:
    # (1,0,0,0): mean .25; sample variance (.5625 + 3 * .0625) / 3 = .25, std .5 -> .75 / .5 and -.25 / .5.
    group = make_group([1.0, 0.0, 0.0, 0.0])
    GroupStandard(epsilon=0.0)([group])
    assert advantages_of(group) == [1.5, -0.5, -0.5, -0.5]


def test_group_standard_adds_epsilon_to_the_spread() -> None:
    # (2,0): mean 1, sample std sqrt(2); 1 / (sqrt(2) + .5).
    group = make_group([2.0, 0.0])
    GroupStandard(epsilon=0.5)([group])
    assert advantages_of(group) == pytest.approx([1 / (math.sqrt(2) + 0.5), -1 / (math.sqrt(2) + 0.5)])


def test_group_mean() -> None:
    group = make_group([1.0, 0.0, 0.0, 0.0])
    GroupMean()([group])
    assert advantages_of(group) == [0.75, -0.25, -0.25, -0.25]


def test_leave_one_out() -> None:
    # 1 - 0 = 1; 0 - (1 + 0 + 0) / 3 = -1/3.
    group = make_group([1.0, 0.0, 0.0, 0.0])
    LeaveOneOut()([group])
    assert advantages_of(group) == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3])


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        (GroupStandard(epsilon=0.0), [math.sqrt(0.5), None, -math.sqrt(0.5)]),
        (GroupMean(), [0.5, None, -0.5]),
        (LeaveOneOut(), [1.0, None, -1.0]),
    ],
)
def test_failed_rollouts_are_no_zeros(advantage: Advantage, expected: list[float | None]) -> None:
    group = make_group([3.0, -99.0, 2.0], failed=[1])
    advantage([group])
    assert advantages_of(group) == [value if value is None else pytest.approx(value) for value in expected]


@pytest.mark.parametrize("advantage", GROUP_RELATIVE, ids=repr)
def test_every_token_gets_the_credit_and_groups_do_not_mix(advantage: Advantage) -> None:
    groups = [make_group([1.0, 0.0], [3, 2]), make_group([100.0, 100.0], number=1)]
    advantage(groups)
    first = groups[0].rollouts[0].advantages
    assert first is not None and first.dtype == np.float32
    assert len(first) == 3 and len(set(first.tolist())) == 1 and first[0] > 0
    assert advantages_of(groups[1]) == [0.0, 0.0]


@pytest.mark.parametrize("advantage", GROUP_RELATIVE, ids=repr)
def test_one_rollout_or_none_that_counts(advantage: Advantage) -> None:
    alone, lost = make_group([5.0, 1.0], failed=[1]), make_group([5.0], failed=[0])
    advantage([alone, lost])
    assert advantages_of(alone) == [0.0, None]
    assert advantages_of(lost) == [None]


@pytest.mark.parametrize("advantage", GROUP_RELATIVE, ids=repr)
@given(reward=st.floats(-1e6, 1e6, width=32), size=st.integers(1, 9))
def test_equal_rewards_give_exactly_nothing(advantage: Advantage, reward: float, size: int) -> None:
    group = make_group([reward] * size)
    advantage([group])
    assert advantages_of(group) == [0.0] * size


@pytest.mark.parametrize("advantage", GROUP_RELATIVE, ids=repr)
@given(rewards=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9))
def test_finite_and_centred(advantage: Advantage, rewards: list[float]) -> None:
    group = make_group(rewards)
    advantage([group])
    values = np.array(advantages_of(group), dtype=np.float64)
    assert np.isfinite(values).all()
    assert abs(values.sum()) <= 1e-5 * max(np.abs(values).sum(), 1.0)


def test_a_group_of_one_can_be_refused_beforehand() -> None:
    assert [GroupStandard.min_group, GroupMean.min_group, LeaveOneOut.min_group] == [2, 2, 2]
