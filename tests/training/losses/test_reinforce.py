from __future__ import annotations

from math import log

import pytest

from strop.training.losses.reinforce import Reinforce
from tests.building import make_batch, say, written


def test_value_and_gradient() -> None:
    # -A * l: A = 2: 0.5 * 2 = 1 and 1.5 * 2 = 3; A = -1: -0.25.
    batch = make_batch([[-0.5, -1.5], [-0.25]], [2.0, -1.0])
    output = say([[-0.5, -1.5], [-0.25]])
    value, _ = Reinforce()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([1.0, 3.0, -0.25])
    assert written(batch, output.logprobs.grad) == pytest.approx([-2.0, -2.0, 1.0])


def test_metrics_tell_how_far_the_policy_has_moved() -> None:
    batch = make_batch([[log(0.2), log(0.4)]])
    _, metrics = Reinforce()(say([[log(0.4), log(0.4)]]), batch)
    # Ratios 2 and 1; k3 of 2 is 2 - 1 - 0.6931472.
    assert metrics == pytest.approx({"ratio": 1.5, "kl": 0.3068528 / 2}, abs=1e-7)
