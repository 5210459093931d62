"""MC-GRPO (strop.recipes.objective.mc_grpo): one median rollout is dropped."""

from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.recipes.objective.mc_grpo import MedianCentred, WithoutMedian
from strop.types import Group
from tests.building import advantages_of, make_group


def with_advantages(rewards: list[float], advantage: MedianCentred) -> Group:
    kept = WithoutMedian()(make_group(rewards)).group
    assert kept is not None
    advantage([kept])
    return kept


def test_advantages_by_hand() -> None:
    group = with_advantages([0.1, 0.4, 2.0], MedianCentred())
    assert [rollout.id for rollout in group.rollouts] == ["0-0", "0-2"]
    assert advantages_of(group) == pytest.approx([-0.9967, 5.3156], abs=5e-5)
    rescaled = with_advantages([0.1, 0.4, 2.0], MedianCentred(rescale=True))
    assert advantages_of(rescaled) == pytest.approx([-1.4950, 7.9734], abs=1e-4)


def test_a_better_best_changes_no_other_sign() -> None:
    for best in (0.5, 2.0, 200.0):
        assert advantages_of(with_advantages([0.1, 0.4, best, 0.3, 0.45], MedianCentred("none")))[0] == pytest.approx(
            -0.3
        )


def test_one_of_several_median_rollouts_is_dropped_and_the_others_get_zero() -> None:
    group = with_advantages([0.0, 0.0, 1.0], MedianCentred())
    assert [rollout.id for rollout in group.rollouts] == ["0-1", "0-2"]
    assert advantages_of(group) == pytest.approx([0.0, 1000.0])  # the paper's scale, where most rewards agree
    assert advantages_of(with_advantages([0.0, 0.0, 1.0], MedianCentred("none"))) == [0.0, 1.0]


def test_other_scales() -> None:
    # std of (0, 1, 2) is 1
    assert advantages_of(with_advantages([0.0, 1.0, 2.0], MedianCentred("median_std", epsilon=0.0))) == [-1.0, 1.0]
    with pytest.raises(ConfigurationError, match="no scale 'mad'"):
        MedianCentred("mad")


def test_an_even_group_has_the_lower_median_and_failed_rollouts_are_left_out() -> None:
    kept = WithoutMedian()(make_group([3.0, 1.0, 2.0, 9.0, 0.0], failed=[3])).group
    assert kept is not None
    assert [rollout.id for rollout in kept.rollouts] == ["0-0", "0-2", "0-4"]
    assert kept.rollouts[0].facts["median"] == 1.0 and kept.rollouts[0].rewards == {}
    assert WithoutMedian()(make_group([1.0, 2.0], failed=[0])).group is None


def test_a_missing_gate_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="add the gate WithoutMedian"):
        MedianCentred()([make_group([1.0, 0.0])])
