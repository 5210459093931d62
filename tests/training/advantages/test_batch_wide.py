"""Advantage over the whole batch: strop.recipes.objective.tricks_or_traps, strop.recipes.objective.seeupo."""

from __future__ import annotations

import math

import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.seeupo import SequenceStandard
from strop.recipes.objective.tricks_or_traps import GroupMeanBatchStd
from strop.training.advantages.batch_relative import BaselineStandard
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group
from tests.building import advantages_of, make_group


def draw() -> list[Group]:
    rewards = [[1.0, 0.0, 1.0, 1.0], [0.0] * 4, [1.0] * 4]
    return [make_group(each, number=number) for number, each in enumerate(rewards)]


def test_lite_ppo_divides_all_groups_by_the_draw() -> None:
    # 7 of 12 rewards are 1: std = sqrt(7/12 * 5/12 * 12/11) = .5149
    groups = draw()
    GroupMeanBatchStd(epsilon=0.0)(groups)
    spread = math.sqrt(7 / 12 * 5 / 12 * 12 / 11)
    assert spread == pytest.approx(0.5149, abs=5e-5)
    assert advantages_of(groups[0]) == pytest.approx([0.4855, -1.4565, 0.4855, 0.4855], abs=5e-5)
    assert advantages_of(groups[1]) == advantages_of(groups[2]) == [0.0] * 4
    GroupStandard(epsilon=0.0)(groups[:1])
    assert advantages_of(groups[0]) == pytest.approx([0.5, -1.5, 0.5, 0.5])


def test_lite_ppo_in_a_uniform_draw() -> None:
    group = make_group([1.0, 1.0])
    GroupMeanBatchStd()([group])
    assert advantages_of(group) == [0.0, 0.0]


def test_reinforce_plus_plus_baseline_weighs_tokens() -> None:
    # a = +-.5 in group 0 with 3 and 1 tokens, 0 in group 1 with 4: mean (1.5 - .5) / 8 = .125;
    # squares 3 * .375^2 + .625^2 + 4 * .125^2 = .875, std = sqrt(.875 / 8)
    groups = [make_group([1.0, 0.0], [3, 1]), make_group([5.0, 5.0], [2, 2], number=1)]
    BaselineStandard(epsilon=0.0)(groups)
    spread = math.sqrt(0.875 / 8)
    assert advantages_of(groups[0]) == pytest.approx([0.375 / spread, -0.625 / spread])
    assert advantages_of(groups[1]) == pytest.approx([-0.125 / spread] * 2)


def test_seeupo_centres_by_group_scales_by_draw_and_holds_outliers() -> None:
    group = make_group([1.0, 0.0])
    SequenceStandard()([group])
    assert advantages_of(group) == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)])
    many = [make_group([1.0, 0.0]), *(make_group([1.0, 1.0], number=n) for n in range(1, 40))]
    SequenceStandard(limit=3.0)(many)
    assert advantages_of(many[0]) == [3.0, -3.0]  # 0.5 / sqrt(.5 / 79) = 6.3
    with pytest.raises(ConfigurationError, match="limit > 0, got 0"):
        SequenceStandard(limit=0.0)


def test_seeupo_only_centres_where_nothing_varies() -> None:
    group = make_group([1.0, 1.0])
    SequenceStandard()([group])
    assert advantages_of(group) == [0.0, 0.0]


def test_equal_rewards_get_exactly_nothing_beside_a_group_with_contrast() -> None:
    """0.1 is no binary number: a mean of three is not 0.1."""
    groups = [make_group([0.1] * 3), make_group([1.0, 0.0], number=1)]
    GroupMeanBatchStd()(groups)
    assert advantages_of(groups[0]) == [0.0, 0.0, 0.0]
