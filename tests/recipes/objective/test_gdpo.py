"""GDPO's advantage (strop.recipes.objective.gdpo) by hand, and a case that GRPO cannot distinguish."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.gdpo import DecoupledStandard
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group
from tests.building import advantages_of, make_group


def two_rewards(first: Sequence[float], second: Sequence[float], number: int = 0) -> Group:
    """A group whose rollouts have two rewards, added up with weight 1."""
    group = make_group([a + b for a, b in zip(first, second, strict=True)], number=number)
    for rollout, a, b in zip(group.rollouts, first, second, strict=True):
        rollout.rewards = {"right": a, "brief": b}
    return group


def wins_one_and_wins_both() -> list[Group]:
    return [two_rewards([0, 1], [0, 0]), two_rewards([0, 1], [0, 1], number=1)]


def test_winning_both_rewards_counts_more_than_winning_one() -> None:
    # S is -+.7071 and -+1.4142; its std over the four is sqrt((2 * .5 + 2 * 2) / 3) = 1.2910
    groups = wins_one_and_wins_both()
    DecoupledStandard(epsilon=0.0)(groups)
    std = math.sqrt(5 / 3)
    assert advantages_of(groups[0]) == pytest.approx([-math.sqrt(0.5) / std, math.sqrt(0.5) / std])
    assert advantages_of(groups[1]) == pytest.approx([-math.sqrt(2) / std, math.sqrt(2) / std])
    assert advantages_of(groups[0])[1] == pytest.approx(0.5477, abs=5e-5)
    assert advantages_of(groups[1])[1] == pytest.approx(1.0954, abs=5e-5)


def test_grpo_gives_both_the_same_advantages() -> None:
    groups = wins_one_and_wins_both()
    GroupStandard(epsilon=0.0)(groups)
    assert advantages_of(groups[0]) == pytest.approx(advantages_of(groups[1]))


def test_weights_apply_after_the_normalization() -> None:
    # S = 3 * (-+.7071) of `right` and +-.7071 of `brief`: -+1.4142; alone in the batch, normalized to -+.7071
    group = two_rewards([0, 1], [1, 0])
    DecoupledStandard({"right": 3.0}, epsilon=0.0)([group])
    assert advantages_of(group) == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    even = two_rewards([0, 1], [1, 0])
    DecoupledStandard(epsilon=1e-4)([even])
    assert advantages_of(even) == pytest.approx([0.0, 0.0])


def test_a_constant_reward_changes_nothing() -> None:
    with_it, without = two_rewards([0, 1, 1], [1, 1, 1]), make_group([0, 1, 1])
    for rollout, reward in zip(without.rollouts, [0.0, 1.0, 1.0], strict=True):
        rollout.rewards = {"right": reward}
    DecoupledStandard()([with_it])
    DecoupledStandard()([without])
    assert advantages_of(with_it) == advantages_of(without)


def test_a_weight_of_no_reward_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'rihgt'.*right"):
        DecoupledStandard({"rihgt": 1.0})([two_rewards([0, 1], [0, 0])])
