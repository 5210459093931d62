"""CANON (strop.recipes.objective.canon): halves by rank, and Dr. GRPO in the middle."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import ConfigurationError
from strop.recipes.objective.canon import Conditional
from strop.training.advantages.group_relative import GroupMean
from strop.training.requirements import ENTROPY
from strop.types import Group
from tests.building import advantages_of, make_group


def with_entropy(rewards: list[float], entropies: list[float]) -> Group:
    group = make_group(rewards, lengths=[2] * len(rewards))
    for rollout, entropy in zip(group.rollouts, entropies, strict=True):
        rollout.policy_statistics["entropy"] = np.array([entropy - 0.1, entropy + 0.1], dtype=np.float32)
    return group


@pytest.mark.parametrize(
    ("mix", "expected"),
    [(1.0, [0.0, -1.0, 0.5, 0.5]), (0.0, [0.5, -0.5, 0.0, 0.0]), (0.5, [0.25, -0.75, 0.25, 0.25])],
)
def test_mixes_by_hand(mix: float, expected: list[float]) -> None:
    group = with_entropy([1.0, 0.0, 1.0, 1.0], [0.2, 0.3, 0.6, 0.9])
    Conditional(mix=mix)([group])
    assert advantages_of(group) == pytest.approx(expected)


def test_halves_follow_the_metric_and_not_the_order_in_the_group() -> None:
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


def test_ties_keep_their_order_and_a_single_rollout_gets_zero() -> None:
    group = make_group([1.0, 0.0], lengths=[3, 3])
    Conditional("length")([group])
    assert advantages_of(group) == [1.0, -1.0]
    alone = make_group([1.0])
    Conditional("length")([alone])
    assert advantages_of(alone) == [0.0]


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="no metric 'entropie'"):
        Conditional("entropie")
    with pytest.raises(ConfigurationError, match="no policy statistic entropy"):
        Conditional()([make_group([1.0, 0.0])])
    assert Conditional().needs == {ENTROPY} and Conditional("length").needs == frozenset()


def test_a_schedule_rises_and_falls_three_times() -> None:
    """The paper's: peak .6, 30 steps up of 150, then three cosines of 40 steps to 0."""
    scheduled = Conditional(mix=0.6, cycles=3, steps=150)
    found = [scheduled.mix_at(step) for step in (0, 15, 29, 30, 50, 69, 70, 90, 110, 149)]
    end = 0.3 * (1 + np.cos(np.pi * 39 / 40))
    assert found == pytest.approx([0.0, 0.3, 0.58, 0.6, 0.3, end, 0.6, 0.3, 0.6, end])
    assert Conditional(mix=0.7).mix_at(99) == 0.7
    with pytest.raises(ConfigurationError, match="steps >= 1, got 3 and 0"):
        Conditional(cycles=3)


def test_a_schedule_counts_batches_and_resumes() -> None:
    """Mix 0 compares within halves, mix .5 is the group mean: at steps 0 and 1 of 10 with a peak of 1 at step 2."""
    scheduled, again = (Conditional(mix=1.0, cycles=1, steps=10) for _ in range(2))
    first, second, third = (with_entropy([1.0, 0.0, 1.0, 1.0], [0.2, 0.3, 0.6, 0.9]) for _ in range(3))
    scheduled([first])
    assert advantages_of(first) == [0.5, -0.5, 0.0, 0.0]
    again.restore(json.loads(json.dumps(scheduled.state())))
    scheduled([second])
    again([third])
    assert advantages_of(second) == advantages_of(third) == [0.25, -0.75, 0.25, 0.25]
