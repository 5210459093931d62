from __future__ import annotations

from math import log

import pytest
import torch

from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.aipo import Aipo
from strop.training.losses.reinforce import Reinforce
from tests.building import make_batch, say, written


def coefficient(loss: Aipo, policy: float, advantage: float = 1.0) -> float:
    """What multiplies grad log policy, for one token with behaviour probability 0.1."""
    batch = make_batch([[log(0.1)]], [advantage])
    output = say([[log(policy)]])
    (-loss(output, batch)[0]).sum().backward()
    return written(batch, output.logprobs.grad)[0]


def test_hand_worked_coefficients() -> None:
    detached, plain = Aipo(cap=4.0), Aipo(cap=4.0, is_detached=False)
    assert coefficient(detached, 0.2) == pytest.approx(2.0)
    assert coefficient(plain, 0.2) == pytest.approx(2.0)
    assert coefficient(detached, 0.9) == pytest.approx(4.0)
    assert coefficient(plain, 0.9) == 0.0
    assert coefficient(detached, 0.9, -1.0) == pytest.approx(-4.0)
    assert coefficient(plain, 0.9, -1.0) == 0.0
    assert coefficient(detached, 0.001, -1.0) == pytest.approx(-0.01)  # no lower bound


@pytest.mark.parametrize("is_detached", [True, False])
def test_on_policy_it_is_reinforce(is_detached: bool) -> None:
    numbers = [[-0.3, -1.7], [-2.9]]
    gradients = []
    for loss in (Aipo(is_detached=is_detached), Reinforce()):
        batch, output = make_batch(numbers, [1.0, -2.0]), say(numbers)
        (batch.share * loss(output, batch)[0]).sum().backward()
        assert output.logprobs.grad is not None
        gradients.append(output.logprobs.grad)
    assert torch.equal(*gradients)


def test_detached_it_is_reinforce_with_truncated_weights() -> None:
    batch, output = make_batch([[-0.3, -3.7], [-2.9]], [1.0, -2.0]), say([[-0.9, -0.1], [-1.0]])
    expected = Truncated(cap=4.0)(output.logprobs, batch) * Reinforce()(output, batch)[0]
    assert torch.equal(Aipo(cap=4.0)(output, batch)[0], expected)
