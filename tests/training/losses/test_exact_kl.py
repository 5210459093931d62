"""Divergences over whole distributions, the soft clip and the entropy band."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from strop.errors import ConfigurationError
from strop.training.losses.entropy import EntropyClamp
from strop.training.losses.exact_kl import ExactKl
from strop.training.losses.reinforce import Reinforce
from strop.training.losses.sapo import Sapo
from strop.training.requirements import Logits
from tests.building import Said, make_batch, say, written


@pytest.mark.parametrize(
    ("direction", "value"),
    [("reverse", 0.75 * log(3) + 0.25 * log(1 / 3)), ("forward", 0.25 * log(1 / 3) + 0.75 * log(3))],
)
def test_exact_divergences_by_hand(direction: str, value: float) -> None:
    # policy (.75, .25), other (.25, .75)
    batch = make_batch([[0.0]])
    own = torch.tensor([[0.5, 0.5], [0.75, 0.25]], dtype=torch.float64).log().requires_grad_()
    other = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=torch.float64).log()
    nothing = torch.zeros(2, dtype=torch.float64)
    output = Said(nothing, nothing, own, batch.tokens, {"T": other})
    loss = ExactKl(direction, "T")
    assert loss.needs == {Logits("T")}
    found, metrics = loss(output, batch)
    (gradient,) = torch.autograd.grad(found.sum(), own)
    assert written(batch, found) == pytest.approx([value]) == [metrics[f"{direction}_kl"]]
    # forward: softmax - other = (.5, -.5); reverse: pi (log(pi / q) - KL)
    slope = 0.5 if direction == "forward" else 0.75 * (log(3) - value)
    assert gradient[1].tolist() == pytest.approx([slope, -slope])


def test_an_unknown_direction_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no direction 'back'"):
        ExactKl("back")


def soft(ratio: float, advantage: float) -> tuple[float, float]:
    batch, output = make_batch([[-2.0]], [advantage]), say([[-2.0 + log(ratio)]])
    value, _ = Sapo(2.0, 4.0)(output, batch)
    value.sum().backward()
    return written(batch, value)[0], written(batch, output.logprobs.grad)[0]


def test_the_soft_gate_by_hand() -> None:
    gate = 1 / (1 + exp(-2.0 * 0.5))
    assert soft(1.5, 3.0) == pytest.approx((-4 / 2 * gate * 3, -4 * gate * (1 - gate) * 1.5 * 3))
    steeper = 1 / (1 + exp(-4.0 * 0.5))
    assert soft(1.5, -3.0) == pytest.approx((4 / 4 * steeper * 3, 4 * steeper * (1 - steeper) * 1.5 * 3))


def test_on_policy_the_soft_gate_is_reinforce() -> None:
    batch = make_batch([[-1.0, -2.0], [-0.5]], [1.5, -0.5])
    ours, theirs = say([[-1.0, -2.0], [-0.5]]), say([[-1.0, -2.0], [-0.5]])
    Sapo()(ours, batch)[0].sum().backward()
    Reinforce()(theirs, batch)[0].sum().backward()
    assert written(batch, ours.logprobs.grad) == pytest.approx(written(batch, theirs.logprobs.grad))
    with pytest.raises(ConfigurationError, match=r"temperatures > 0, got 0.0"):
        Sapo(0.0)


def test_entropy_is_held_in_its_band() -> None:
    # mean entropies 0.1, 1 and 3 with the band [0.5, 2]: 0.4 below, within, 1 above
    batch = make_batch([[0.0, 0.0], [0.0], [0.0]])
    output = say([[-1.0, -1.0], [-1.0], [-1.0]], entropy=[[0.0, 0.2], [1.0], [3.0]])
    value, metrics = EntropyClamp(0.5, 2.0)(output, batch)
    value.sum().backward()
    assert written(batch, value) == pytest.approx([0.4, 0.4, 0.0, 1.0])
    assert written(batch, output.entropy.grad) == pytest.approx([-1.0, -1.0, 0.0, 1.0])
    assert metrics["outside_band"] == pytest.approx(3 / 4)
    with pytest.raises(ConfigurationError, match=r"0 <= low <= high, got 2.0 and 1.0"):
        EntropyClamp(2.0, 1.0)
