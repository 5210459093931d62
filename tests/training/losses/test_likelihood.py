from __future__ import annotations

import pytest

from strop.training.losses.likelihood import Likelihood
from tests.building import make_batch, say, written


def test_is_the_negative_log_likelihood_whatever_the_advantage() -> None:
    batch = make_batch([[0.0, 0.0], [0.0]], [5.0, -5.0])
    output = say([[-0.5, -1.5], [-1.0]])
    value, metrics = Likelihood()(output, batch)
    (batch.share * value).sum().backward()
    assert written(batch, value) == pytest.approx([0.5, 1.5, 1.0])
    assert metrics == pytest.approx({"nll": 1.0})
    assert written(batch, output.logprobs.grad) == pytest.approx([-1 / 3] * 3)
