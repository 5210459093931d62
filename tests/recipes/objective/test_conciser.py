"""ConciseR's length term (strop.recipes.objective.conciser): one wrong rollout switches it off."""

from __future__ import annotations

import pytest

from strop.recipes.objective.conciser import BrevityWhenAllRight
from strop.training.advantages.group_relative import GroupMean, GroupStandard
from tests.building import advantages_of, make_group

LENGTHS = [100, 200, 300]


@pytest.mark.parametrize("max_tokens", [300, 1000, 50])
def test_if_all_are_right_shorter_is_better_at_any_scale(max_tokens: int) -> None:
    group = make_group([1.0, 1.0, 1.0], LENGTHS)
    BrevityWhenAllRight(GroupStandard(epsilon=0.0), max_tokens)([group])
    assert advantages_of(group) == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)


@pytest.mark.parametrize("lengths", [LENGTHS, LENGTHS[::-1]])
def test_one_wrong_rollout_switches_length_off(lengths: list[int]) -> None:
    group = make_group([1.0, 1.0, 0.0], lengths)
    BrevityWhenAllRight(GroupStandard(epsilon=0.0), 300)([group])
    assert advantages_of(group) == pytest.approx([0.57735, 0.57735, -1.15470], abs=1e-5)


def test_without_the_division_the_scale_matters() -> None:
    # r' = 2 - n / 300: 5/3, 4/3, 1; minus their mean 4/3
    group = make_group([1.0, 1.0, 1.0], LENGTHS)
    BrevityWhenAllRight(GroupMean(), 300)([group])
    assert advantages_of(group) == pytest.approx([1 / 3, 0.0, -1 / 3], abs=1e-6)


def test_rewards_are_unchanged_and_failed_rollouts_get_no_advantage() -> None:
    group = make_group([1.0, 0.0, 1.0], [3, 4, 5], failed=[1])
    BrevityWhenAllRight(GroupStandard(epsilon=0.0), 10)([group])
    assert advantages_of(group) == [pytest.approx(0.70711, abs=1e-5), None, pytest.approx(-0.70711, abs=1e-5)]
    assert [rollout.reward for rollout in group.rollouts] == [1.0, 0.0, 1.0]
