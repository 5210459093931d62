from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.training.advantages.batch_relative import BatchStandard
from tests.building import advantages_of, make_group


def test_over_all_tokens_of_the_draw() -> None:
    # Rewards 1 and 0 of 1 and 3 tokens: mean 1/4; variance (1 * .5625 + 3 * .0625) / 4 = .1875, std .4330127.
    # .75 / .4330127 = 1.7320508; -.25 / .4330127 = -.5773503. The groups have one rollout each.
    groups = [make_group([1.0], [1]), make_group([0.0], [3], number=1)]
    BatchStandard()(groups)
    assert [*advantages_of(groups[0]), *advantages_of(groups[1])] == pytest.approx([1.7320508, -0.5773503])


def test_tokens_end_up_with_mean_zero_and_unit_variance() -> None:
    groups = [make_group([1.0, 0.2, 0.7], [2, 5, 1]), make_group([0.0, 0.9], [4, 3], number=1)]
    BatchStandard()(groups)
    tokens = [float(x) for g in groups for t in g.rollouts if t.advantages is not None for x in t.advantages]
    assert len(tokens) == 15
    assert sum(tokens) == pytest.approx(0.0, abs=1e-5)
    assert sum(x * x for x in tokens) / 15 == pytest.approx(1.0, abs=1e-5)


def test_failed_rollouts_do_not_count() -> None:
    group = make_group([2.0, 1000.0, 0.0], failed=[1])
    BatchStandard()([group])
    assert advantages_of(group) == [pytest.approx(1.0), None, pytest.approx(-1.0)]
    BatchStandard()([make_group([1.0], failed=[0])])
    BatchStandard()([])


@given(reward=st.floats(-1e6, 1e6, width=32), lengths=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_equal_rewards_give_exactly_nothing(reward: float, lengths: list[int]) -> None:
    group = make_group([reward] * len(lengths), lengths)
    BatchStandard()([group])
    for rollout, length in zip(group.rollouts, lengths, strict=True):
        assert rollout.advantages is not None
        assert rollout.advantages.tolist() == [0.0] * length
