from __future__ import annotations

from math import log

import pytest
import torch

from strop.training.losses.clip import Clip
from tests.building import make_batch, say, written


def loss_and_gradient(loss: Clip, ratio: float, advantage: float) -> tuple[float, float]:
    """For one token with behaviour probability 0.1; d ratio / d logprob = ratio."""
    batch = make_batch([[log(0.1)]], [advantage])
    output = say([[log(0.1 * ratio)]])
    value, _ = loss(output, batch)
    value.sum().backward()
    return written(batch, value)[0], written(batch, output.logprobs.grad)[0]


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "gradient"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 1.0, -1.1, -1.1),
        (1.3, 1.0, -1.2, 0.0),  # up far enough: nothing left to push
        (0.5, 1.0, -0.5, -0.5),  # wanted up, went down: still pushed
        (0.5, -1.0, 0.8, 0.0),  # down far enough
        (1.5, -1.0, 1.5, 1.5),  # wanted down, went up: still pushed, without bound
    ],
)
def test_values_and_zero_gradient_regions(ratio: float, advantage: float, value: float, gradient: float) -> None:
    assert loss_and_gradient(Clip(), ratio, advantage) == pytest.approx((value, gradient), abs=1e-12)


def test_higher_upper_bound() -> None:
    # DAPO, high 0.28: ratio 1.25 is still inside, 1.3 is not.
    assert loss_and_gradient(Clip(high=0.28), 1.25, 1.0) == pytest.approx((-1.25, -1.25))
    assert loss_and_gradient(Clip(high=0.28), 1.3, 1.0) == pytest.approx((-1.28, 0.0))


def test_dual_clip_bounds_the_bad_side_only() -> None:
    assert loss_and_gradient(Clip(dual=3.0), 5.0, -1.0) == pytest.approx((3.0, 0.0))  # min(5, 3) * |A|
    assert loss_and_gradient(Clip(dual=3.0), 2.0, -1.0) == pytest.approx((2.0, 2.0))
    assert loss_and_gradient(Clip(dual=3.0), 5.0, 1.0) == pytest.approx((-1.2, 0.0))


def test_metrics() -> None:
    # Ratios 1, 1.3, 0.5 with A = 1: one of three is clipped; mean ratio 2.8 / 3;
    # k3 = r - 1 - log r: 0, 0.3 - 0.2623643 = 0.0376357, -0.5 + 0.6931472 = 0.1931472; mean 0.0769276.
    batch = make_batch([[0.0, 0.0, 0.0]])
    _, metrics = Clip()(say([[0.0, log(1.3), log(0.5)]]), batch)
    assert metrics == pytest.approx({"clipped_share": 1 / 3, "ratio": 2.8 / 3, "kl": 0.0769276}, abs=1e-7)


def test_prompt_tokens_have_no_loss() -> None:
    batch = make_batch([[-1.0, -1.0], [-1.0]])
    value, _ = Clip()(say([[-1.0, -1.0], [-1.0]]), batch)
    assert torch.equal(value == 0, ~batch.trainable)
