from __future__ import annotations

import math

import pytest

from strop.training.corrections.importance_weights import Truncated
from tests.building import make_batch, say, written


def test_weights_are_ratios_up_to_the_cap() -> None:
    batch = make_batch([[math.log(0.1)] * 3])
    output = say([[math.log(0.04), math.log(0.1), math.log(0.3)]])
    weights = Truncated(cap=2.0)(output.logprobs, batch)
    assert written(batch, weights) == pytest.approx([0.4, 1.0, 2.0])
    assert not weights.requires_grad


def test_same_policy_gives_ones_to_the_bit() -> None:
    numbers = [[-0.3, -1.7], [-2.9]]
    batch = make_batch(numbers)
    assert written(batch, Truncated()(say(numbers).logprobs, batch)) == [1.0, 1.0, 1.0]


def test_an_impossible_token_gets_the_cap() -> None:
    batch = make_batch([[-math.inf, 0.0]])
    assert written(batch, Truncated()(say([[-1.0, -1000.0]]).logprobs, batch)) == [2.0, pytest.approx(math.exp(-20))]
