from __future__ import annotations

from math import log

import pytest

from strop.training.losses.cispo import Cispo
from tests.building import make_batch, say, written


def test_clipped_tokens_keep_a_gradient_of_capped_weight() -> None:
    # high = 1: the weight is min(ratio, 2). Ratios 5, 1.5, 0.01 -> weights 2, 1.5, 0.01; gradient = -weight * A.
    batch = make_batch([[log(0.1), log(0.2), log(0.5)]], [3.0])
    output = say([[log(0.5), log(0.3), log(0.005)]])
    value, metrics = Cispo(high=1.0)(output, batch)
    value.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-6.0, -4.5, -0.03])
    assert written(batch, value) == pytest.approx([-6.0 * log(0.5), -4.5 * log(0.3), -0.03 * log(0.005)])
    assert metrics["clipped_share"] == pytest.approx(1 / 3)


def test_a_lower_bound_lifts_the_weight() -> None:
    batch = make_batch([[log(0.5)]])
    output = say([[log(0.05)]])
    Cispo(low=0.2)(output, batch)[0].sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.8])


def test_default_cap_is_five_without_a_lower_bound() -> None:
    batch = make_batch([[log(0.01), log(0.9)]])
    output = say([[log(0.9), log(0.009)]])
    Cispo()(output, batch)[0].sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-5.0, -0.01])
