"""A teacher's tokens weigh p / (p + shift): numbers by hand."""

from __future__ import annotations

from math import log

import pytest

from strop.errors import ConfigurationError
from strop.training.losses.outside.shaped_probability import ShapedProbability
from tests.building import make_batch, say, written


def test_by_hand() -> None:
    """A = 2, p = 0.3: -2 * 0.75, gradient -2 * 0.03 / 0.16; p = 0.1: -2 * 0.5, gradient -2 / 4. The old policy is 1."""
    batch, output = make_batch([[0.0, 0.0]], [2.0]), say([[log(0.3), log(0.1)]])
    loss, metrics = ShapedProbability()(output, batch)
    assert written(batch, loss) == pytest.approx([-1.5, -1.0]) and metrics["shaped"] == pytest.approx(0.625)
    loss.sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.375, -0.5])
    assert written(batch, ShapedProbability(0.3)(output, batch)[0]) == pytest.approx([-1.0, -0.5])


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="ShapedProbability needs a shift > 0, got 0"):
        ShapedProbability(0)
