"""VERL (strop.recipes.objective.effective_rank): effective ranks, their growth, and a bonus that is never negative."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.recipes.objective.effective_rank import HiddenRank, growth_and_change, rank_metrics, shaped
from strop.recipes.objective.effective_rank import effective_rank_of_gram as effective_rank
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupMean
from strop.training.requirements import HIDDEN_AFTER
from strop.types import Group
from tests.building import advantages_of, make_group


def rank_of(states: list[list[float]]) -> float:
    table = np.array(states)
    return effective_rank(table @ table.T)


def test_equal_singular_values_count_dimensions() -> None:
    assert rank_of([[1, 0], [-1, 0], [0, 1], [0, -1]]) == pytest.approx(2.0)
    assert rank_of([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]) == pytest.approx(3.0)
    assert rank_of([[1.0, 2.0], [1.0, 2.0]]) == 1.0


def test_it_is_the_singular_values_and_not_their_squares() -> None:
    """Singular values 3 sqrt(2) and sqrt(2): shares 3/4 and 1/4."""
    expected = np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert rank_of([[3, 0], [-3, 0], [0, 1], [0, -1]]) == pytest.approx(expected)


def test_a_translation_of_the_states_changes_nothing() -> None:
    states = [[3.0, 0, 1], [-3, 0, 2], [0, 1, 4], [0, -1, 0]]
    translated = [[x + 5.0, y - 7.0, z + 2.0] for x, y, z in states]
    assert rank_of(translated) == pytest.approx(rank_of(states)) and rank_of(states) > 1.5


def test_the_bonus_by_hand() -> None:
    """Running means 2, .5, -.25 and metrics 3, 1, 0: u = .5, 1, 1; u is clipped at 5."""
    advantage = HiddenRank(Constant(1.0))
    advantage.restore({"means": [2.0, 0.5, -0.25]})
    found = advantage._bonus(np.array([[3.0, 1.0, 0.0], [2.0, 0.5, 99.0], [2.2, 0.5, 99.0]]))
    share, sure = 1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(-10.0))
    expected = [share * np.tanh(0.5) + (1 - share) * np.tanh(1.0), 0.0, sure * np.tanh(0.1)]
    assert found.tolist() == pytest.approx(expected)


def test_growth_and_its_change() -> None:
    assert growth_and_change([2.0, 4.0, 5.0]) == (2.0, 0.0)
    assert growth_and_change([2.0, 4.0]) == (2.0, 0.0)
    assert growth_and_change([2.0]) == growth_and_change([]) == (0.0, 0.0)


def test_prefixes_are_measured_at_every_stride() -> None:
    states = np.random.default_rng(0).normal(size=(9, 4))
    ranks = [rank_of(states[:end].tolist()) for end in (4, 8, 9)]
    assert rank_metrics(states, 4) == pytest.approx([ranks[-1], *growth_and_change(ranks)])
    assert rank_metrics(states[:8], 4) == pytest.approx([ranks[1], ranks[1] - ranks[0], 0.0])
    assert rank_metrics(states, 40)[1:].tolist() == [0.0, 0.0]


def test_running_means_start_at_zero() -> None:
    """After batches with metrics f and g: .7 * .3 f + .3 g."""
    advantage = HiddenRank(Constant(1.0), stride=2)
    means = []
    for seed in (0, 1):
        group = group_with_hidden_states(seed)
        advantage([group])
        hidden = [rollout.policy_statistics["hidden_after"].astype(np.float64) for rollout in group.rollouts]
        means.append(np.mean([rank_metrics(states, 2) for states in hidden], axis=0))
    assert advantage.state()["means"] == pytest.approx((0.21 * means[0] + 0.3 * means[1]).tolist())


@pytest.mark.parametrize(
    ("advantage", "bonus", "expected"), [(-1, 0.8, -0.5), (0.4, 0.1, 0.5), (0.4, -0.3, 0.4), (0, 1, 0)]
)
def test_bonus_bounds_by_hand(advantage: float, bonus: float, expected: float) -> None:
    assert shaped(np.array([advantage], dtype=np.float32), bonus, 2.0).tolist() == pytest.approx([expected])


@given(advantage=st.floats(-1e3, 1e3, width=32), bonus=st.floats(-2, 2))
def test_the_bonus_keeps_signs_and_is_never_negative(advantage: float, bonus: float) -> None:
    (found,) = shaped(np.array([advantage], dtype=np.float32), bonus, 2.0).tolist()
    assert found * advantage >= 0 and found >= np.float32(advantage)


def group_with_hidden_states(seed: int, spread: float = 1.0) -> Group:
    group = make_group([1.0, 0.0], lengths=[6, 6])
    stream = np.random.default_rng(seed)
    for index, rollout in enumerate(group.rollouts):
        scale = np.array([1.0] * (1 if index else 4) + [0.0] * (3 if index else 0)) * spread
        rollout.policy_statistics["hidden_after"] = (stream.normal(size=(6, 4)) * scale).astype(np.float32)
    return group


def test_the_first_batch_is_unchanged_and_then_the_higher_rank_gains() -> None:
    advantage = HiddenRank(Constant(1.0), stride=2)
    first, second = group_with_hidden_states(0), group_with_hidden_states(1)
    advantage([first])
    assert advantages_of(first) == [1.0, 1.0]
    again = HiddenRank(Constant(1.0), stride=2)
    again.restore(json.loads(json.dumps(advantage.state())))
    advantage([second])
    high, low = (value for value in advantages_of(second) if value is not None)
    assert high > low >= 1.0
    third = group_with_hidden_states(1)
    again([third])
    assert advantages_of(third) == [high, low]


def test_needs_and_refusals() -> None:
    assert HiddenRank(GroupMean()).needs == {HIDDEN_AFTER}
    with pytest.raises(ConfigurationError, match="no policy statistic hidden_after"):
        HiddenRank(GroupMean())([make_group([1.0, 0.0])])
    with pytest.raises(ConfigurationError, match="stride >= 1"):
        HiddenRank(GroupMean(), stride=0)
