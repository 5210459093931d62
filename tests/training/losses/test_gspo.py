from __future__ import annotations

from math import exp

import pytest
import torch

from strop.training.losses.gspo import Gspo
from tests.building import lay_out, make_batch, say, written


def test_ratio_is_the_geometric_mean_over_the_rollout() -> None:
    # Log ratios (.2, -.2) -> s = 1; (.1, .3, .2) -> s = exp(.2) = 1.2214028.
    batch = make_batch([[-1.0, -1.0], [-1.0, -1.0, -1.0]], [2.0, -1.0])
    value, _ = Gspo(low=0.5, high=0.5)(say([[-0.8, -1.2], [-0.9, -0.7, -0.8]]), batch)
    assert written(batch, value) == pytest.approx([-2.0, -2.0, 1.2214028, 1.2214028, 1.2214028], abs=1e-7)


def test_gradient_is_that_of_the_sequence_ratio() -> None:
    # Mean over tokens of the loss = -A * s, so d / d l_t = -A * s / N = -2 * exp(.2) / 3 for every token.
    batch = make_batch([[-1.0, -1.0, -1.0]], [2.0])
    output = say([[-0.9, -0.7, -0.8]])
    value, _ = Gspo(low=0.5, high=0.5)(output, batch)
    (batch.share * value).sum().backward()
    assert written(batch, output.logprobs.grad) == pytest.approx([-2 * exp(0.2) / 3] * 3, abs=1e-12)

    direct = lay_out([[-0.9, -0.7, -0.8]]).requires_grad_()
    (-2.0 * (direct - lay_out([[-1.0] * 3])).sum().div(3).exp()).backward()
    torch.testing.assert_close(output.logprobs.grad, direct.grad * batch.trainable)


def test_whole_rollouts_are_clipped() -> None:
    # s = exp(.001) = 1.0010005 > 1.0004 with A > 0 is clipped although one of its tokens fell; A < 0 is not.
    batch = make_batch([[-1.0, -1.0], [-1.0, -1.0]], [1.0, -1.0])
    output = say([[-0.9, -1.098], [-0.9, -1.098]])
    value, metrics = Gspo()(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([-1.0004, -1.0004, 1.0010005, 1.0010005], abs=1e-7)
    assert written(batch, output.logprobs.grad) == pytest.approx([0.0, 0.0, 1.0010005, 1.0010005], abs=1e-7)
    assert metrics["clipped_share"] == pytest.approx(0.5)
