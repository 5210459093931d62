"""DART's step filter: by hand, with an unchanged denominator."""

from __future__ import annotations

import numpy as np
import pytest

from strop.capabilities import inside
from strop.errors import ConfigurationError
from strop.recipes.system.dart import HighEntropySteps
from strop.roles import Advantage
from strop.training.advantages.constant import Residual
from strop.training.advantages.group_relative import GroupMean
from strop.training.requirements import ENTROPY
from strop.types import Group
from tests.building import make_group, turn


def two_rollouts(entropies: tuple[list[float], list[float]]) -> Group:
    """Right and wrong, of two turns each: three tokens, then two."""
    group = make_group([1.0, 0.0])
    for rollout, values in zip(group.rollouts, entropies, strict=True):
        rollout.turns = (turn(3), turn(2))
        rollout.policy_statistics["entropy"] = np.array(values, dtype=np.float32)
    return group


def test_the_turns_with_the_lowest_mean_entropy_get_advantage_0() -> None:
    # means: .2 and .5; .9 and .1: of four turns three stay at a share of .75, two at .5
    means = ([0.1, 0.2, 0.3, 0.5, 0.5], [0.9, 0.9, 0.9, 0.2, 0.0])
    group = two_rollouts(means)
    HighEntropySteps(GroupMean(), 0.75)([group])
    right, wrong = (rollout.advantages.tolist() for rollout in group.rollouts if rollout.advantages is not None)
    assert right == [0.5] * 5 and wrong == [-0.5] * 3 + [0.0] * 2
    group = two_rollouts(means)
    HighEntropySteps(GroupMean(), 0.5)([group])
    right, wrong = (rollout.advantages.tolist() for rollout in group.rollouts if rollout.advantages is not None)
    assert right == [0.0] * 3 + [0.5] * 2 and wrong == [-0.5] * 3 + [0.0] * 2


def test_a_share_of_one_is_the_inner_advantage_and_turns_are_ranked_over_the_batch() -> None:
    group, plain = two_rollouts(([1] * 5, [2] * 5)), two_rollouts(([1] * 5, [2] * 5))
    HighEntropySteps(GroupMean(), 1.0)([group])
    GroupMean()([plain])
    for ours, theirs in zip(group.rollouts, plain.rollouts, strict=True):
        np.testing.assert_array_equal(ours.advantages, theirs.advantages)
    dull, lively = two_rollouts(([0.1] * 5, [0.1] * 5)), two_rollouts(([1] * 5, [1] * 5))
    HighEntropySteps(GroupMean(), 0.5)([dull, lively])
    assert all(not rollout.advantages.any() for rollout in dull.rollouts if rollout.advantages is not None)
    assert all(rollout.advantages.all() for rollout in lively.rollouts if rollout.advantages is not None)


def test_its_needs_include_those_of_the_inner_advantage() -> None:
    steps = HighEntropySteps(GroupMean())
    assert steps.needs == {ENTROPY} and max(each.min_group for each in inside(steps, Advantage)) == 2
    assert [each.needs_values for each in inside(HighEntropySteps(Residual()), Advantage)] == [False, True]
    with pytest.raises(ConfigurationError, match="no policy statistic entropy"):
        steps([make_group([1.0, 0.0])])
    with pytest.raises(ConfigurationError, match="0 < share <= 1"):
        HighEntropySteps(GroupMean(), 0.0)
