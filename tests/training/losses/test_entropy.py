from __future__ import annotations

import pytest

from strop.training.losses.entropy import Entropy
from tests.building import make_batch, say, written


def test_less_entropy_is_more_loss() -> None:
    batch = make_batch([[0.0, 0.0]])
    output = say([[0.0, 0.0]], entropy=[[0.7, 0.1]])
    value, metrics = Entropy()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-0.7, -0.1])
    assert written(batch, output.entropy.grad) == [-1.0, -1.0]
    assert metrics == pytest.approx({"entropy": 0.4})
