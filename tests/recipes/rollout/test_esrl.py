"""ESRL's rule by hand: the most confident rollouts are left out."""

from __future__ import annotations

from dataclasses import replace
from math import e, exp, log

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.recipes.rollout.esrl import LeastConfident, confidence
from strop.types import Group
from tests.building import make_group


def group_of(probabilities: list[list[float]], failed: tuple[int, ...] = (), pruned: tuple[int, ...] = ()) -> Group:
    group = make_group([1.0] * len(probabilities), [len(each) for each in probabilities], failed, pruned=pruned)
    for rollout, each in zip(group.rollouts, probabilities, strict=True):
        rollout.turns = (replace(rollout.turns[0], logprobs=np.log(np.array(each)).astype(np.float32)),)
    return group


def test_confidence_by_hand() -> None:
    (one,) = group_of([[0.5, 0.25]]).rollouts
    assert confidence(one) == pytest.approx(1 + (0.5 * exp(0.5) + 0.25 * exp(0.25)) / 2)
    one.turns = (one.turns[0], replace(one.turns[0], logprobs=np.log([np.float32(1.0)])))
    assert confidence(one) == pytest.approx(1 + (0.5 * exp(0.5) + 0.25 * exp(0.25) + e) / 3), "over all turns"
    (sure,) = group_of([[1.0, 1.0]]).rollouts
    assert confidence(sure) == pytest.approx(1 + e)
    assert confidence(make_group([1.0], [0]).rollouts[0]) == 1.0


def test_the_most_confident_are_left_out_rounded_up_and_order_is_kept() -> None:
    group = group_of([[0.9], [0.2], [0.8], [0.3, 0.99], [0.1], [0.5], [0.4]])
    kept = LeastConfident(0.3)(group).group
    assert kept is not None and [t.id for t in kept.rollouts] == ["0-1", "0-4", "0-5", "0-6"], "3 of 7"
    # 0.9, 0.8 and (0.3, 0.99): 1.345 / 2 and 2.664 / 2 of which the mean is 1.535 > 0.5 * exp(0.5) = 0.824
    left = [1 + q * exp(q) for q in (0.9, 0.8)] + [1 + (0.3 * exp(0.3) + 0.99 * exp(0.99)) / 2]
    assert kept.rollouts[0].facts["confidence_left"] == pytest.approx(np.mean(left), rel=1e-5)
    gap = np.mean(left) - np.mean([1 + q * exp(q) for q in (0.2, 0.1, 0.5, 0.4)])
    assert LeastConfident(0.3).learn([kept]) == {"confidence_gap": pytest.approx(gap, rel=1e-5)}
    assert LeastConfident(0.3).learn([group]) == {"confidence_gap": 0.0}


def test_of_equals_the_last_leaves_and_what_does_not_count_is_not_counted() -> None:
    kept = LeastConfident(0.5)(group_of([[0.5]] * 6, failed=(0,), pruned=(1,))).group
    assert kept is not None and [t.id for t in kept.rollouts] == ["0-2", "0-3"]
    assert LeastConfident(0.3)(group_of([[0.5], [0.5]], failed=(1,))).group is None, "one is left out of one"
    ten = LeastConfident(0.3)(group_of([[0.5]] * 10)).group
    assert ten is not None and len(ten.rollouts) == 7, "0.3 * 10 is 3, whatever floats say"


def test_refuses_nonsense() -> None:
    for share in (-0.1, 1.0):
        with pytest.raises(ConfigurationError, match="a share from 0 to below 1"):
            LeastConfident(share)
    assert log(e) == 1
