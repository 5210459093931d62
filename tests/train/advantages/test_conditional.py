"""CANON (strop.train.advantages.conditional): halves by rank, and Dr. GRPO in the middle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.train.advantages.conditional import Conditional
from strop.train.advantages.group_mean import GroupMean
from strop.types import Group
from tests.building import advantages_of, make_group


def with_entropy(rewards: list[float], entropies: list[float]) -> Group:
    group = make_group(rewards, lengths=[2] * len(rewards))
    for attempt, entropy in zip(group.trajectories, entropies, strict=True):
        attempt.notes["entropy"] = np.array([entropy - 0.1, entropy + 0.1], dtype=np.float32)
    return group


@pytest.mark.parametrize(
    ("mix", "expected"),
    [(1.0, [0.0, -1.0, 0.5, 0.5]), (0.0, [0.5, -0.5, 0.0, 0.0]), (0.5, [0.25, -0.75, 0.25, 0.25])],
)
def test_the_card(mix: float, expected: list[float]) -> None:
    group = with_entropy([1.0, 0.0, 1.0, 1.0], [0.2, 0.3, 0.6, 0.9])
    Conditional(mix=mix)([group])
    assert advantages_of(group) == pytest.approx(expected)


def test_the_order_is_the_metrics_and_not_the_groups() -> None:
    group = with_entropy([1.0, 1.0, 1.0, 0.0], [0.9, 0.2, 0.6, 0.3])
    Conditional(mix=1.0)([group])
    assert advantages_of(group) == pytest.approx([0.5, 0.0, 0.5, -1.0])


@given(
    rewards=st.lists(st.floats(-10, 10, width=32), min_size=2, max_size=10).filter(
        lambda rewards: len(rewards) % 2 == 0
    ),
    seed=st.integers(0, 1000),
)
def test_half_and_half_is_dr_grpo(rewards: list[float], seed: int) -> None:
    lengths = np.random.default_rng(seed).integers(1, 9, len(rewards)).tolist()
    group, plain = make_group(rewards, lengths), make_group(rewards, lengths)
    Conditional("length", mix=0.5)([group])
    GroupMean()([plain])
    assert advantages_of(group) == pytest.approx(advantages_of(plain), abs=1e-5)


def test_a_direction_weighs_one_half() -> None:
    # by length, a = 2: short r - 2 * long's mean, long 2 r - short's mean
    group = make_group([1.0, 0.0], lengths=[1, 5])
    Conditional("length", direction=2.0)([group])
    assert advantages_of(group) == [1.0, -1.0]
    by_entropy = with_entropy([1.0, 0.5], [0.1, 0.9])
    Conditional(direction=2.0)([by_entropy])
    assert advantages_of(by_entropy) == [1.5, -1.5]  # low 2 * 1 - .5, high .5 - 2 * 1


def test_ties_are_broken_by_order_and_one_attempt_says_nothing() -> None:
    group = make_group([1.0, 0.0], lengths=[3, 3])
    Conditional("length")([group])
    assert advantages_of(group) == [1.0, -1.0]
    alone = make_group([1.0])
    Conditional("length")([alone])
    assert advantages_of(alone) == [0.0]


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="no metric 'entropie'"):
        Conditional("entropie")
    with pytest.raises(ConfigurationError, match="no notes"):
        Conditional()([make_group([1.0, 0.0])])
    assert Conditional().needs == {"entropy"} and Conditional("length").needs == frozenset()
