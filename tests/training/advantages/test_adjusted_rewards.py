"""ALP and DRA-GRPO (training.advantages.adaptive_length, training.advantages.diversity_adjusted) by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.alp import AdaptiveLength
from strop.recipes.objective.canon import Conditional
from strop.recipes.reward.dra_grpo import DiversityAdjusted
from strop.recipes.setting import Setting
from strop.training.advantages.group_relative import GroupMean, GroupStandard
from strop.training.policy_stats import statistics_needed
from strop.training.requirements import ENTROPY
from strop.types import Group
from tests.building import advantages_of, make_group


@pytest.mark.parametrize(
    ("rewards", "price"), [([1, 1, 1, 0], 7.5e-5), ([0, 0, 0, 0], 2.5e-5), ([1, 1, 1, 1], 1e-4)], ids=str
)
def test_a_token_costs_in_proportion_to_the_solve_rate(rewards: list[float], price: float) -> None:
    group = make_group(rewards, lengths=[1000] * 4)
    found = AdaptiveLength(GroupMean()).rewards(group)
    assert np.array(rewards) - found == pytest.approx([price] * 4)


def test_the_card_of_the_divisor() -> None:
    """1000 and 3000 tokens, all right: r' differ by 2e-4, std 1.414e-4; epsilon decides how much is left."""
    for epsilon, expected in ((1e-4, 0.414), (1e-6, 0.702)):
        group = make_group([1.0, 1.0], lengths=[1000, 3000])
        AdaptiveLength(GroupStandard(epsilon))([group])
        assert advantages_of(group) == pytest.approx([expected, -expected], abs=5e-4)


def test_an_inner_advantage_may_need_notes() -> None:
    run = Setting().run("grpo", AdaptiveLength(Conditional()), ())
    assert statistics_needed(run) == {ENTROPY}
    assert statistics_needed(replace(run, advantage=DiversityAdjusted(GroupMean()))) == frozenset()


def saying(tokens: list[list[int]], rewards: list[float]) -> Group:
    group = make_group(rewards, lengths=[len(each) for each in tokens])
    for rollout, said in zip(group.rollouts, tokens, strict=True):
        rollout.turns = (replace(rollout.turns[0], tokens=np.array(said, dtype=np.int64)),)
    return group


def test_identical_rollouts_share_their_reward() -> None:
    group = saying([[1, 2], [1, 2], [3, 4]], [1.0, 1.0, 1.0])
    assert DiversityAdjusted(GroupMean()).rewards(group) == pytest.approx([0.5, 0.5, 1.0], abs=1e-5)
    DiversityAdjusted(GroupStandard(epsilon=0.0))([group])
    assert advantages_of(group) == pytest.approx([-0.57735, -0.57735, 1.15470], abs=1e-4)
    assert [rollout.reward for rollout in group.rollouts] == [1.0, 1.0, 1.0]


def test_wrong_rollouts_are_not_paid_for_diversity() -> None:
    group = saying([[1, 2], [3, 4]], [0.0, 0.0])
    assert DiversityAdjusted(GroupMean()).rewards(group).tolist() == [0.0, 0.0]


def test_order_counts_from_two_tokens_on() -> None:
    group = saying([[1, 2], [2, 1]], [1.0, 1.0])
    # the same single tokens; of three features of weight 1 each, two agree: cosine 2/3
    assert DiversityAdjusted(GroupMean()).rewards(group) == pytest.approx([1 / (1 + 2 / 3)] * 2, abs=1e-5)
    assert DiversityAdjusted(GroupMean(), size=1).rewards(group) == pytest.approx([0.5, 0.5], abs=1e-5)
    with pytest.raises(ConfigurationError, match="size >= 1, got 0"):
        DiversityAdjusted(GroupMean(), size=0)


def test_an_rollout_that_wrote_nothing_is_like_itself_alone() -> None:
    group = saying([[], [1, 2]], [1.0, 1.0])
    assert DiversityAdjusted(GroupMean()).rewards(group) == pytest.approx([1.0, 1.0], abs=1e-5)


def test_a_price_of_one_ten_millionth_per_token_is_not_rounded_away() -> None:
    """The paper's beta at lengths 20 to 23, all right: r' = 1 - 1e-7 * n, std 1.291e-7 against an epsilon of 1e-6."""
    group = make_group([1.0] * 4, lengths=[20, 21, 22, 23])
    AdaptiveLength(GroupStandard(), beta=1e-7)([group])
    assert advantages_of(group) == pytest.approx([0.13285, 0.04428, -0.04428, -0.13285], abs=1e-5)
