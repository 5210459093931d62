"""The estimators against the exact KL of two distributions over three tokens, by enumeration."""

from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.training.losses.kl import Kl
from strop.training.requirements import Logprobs
from tests.building import Said, make_batch, say, written

REFERENCE = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)


def make_logits() -> Tensor:
    return torch.tensor([0.4, -0.7, 1.1], dtype=torch.float64, requires_grad=True)


def expectation(estimator: str, logits: Tensor) -> Tensor:
    """E_policy[loss]: one rollout per token of the vocabulary, whose share is its probability."""
    policy = logits.log_softmax(0)
    probabilities = [[p] for p in policy.exp().tolist()]
    batch = make_batch([[0.0]] * 3, share=probabilities, reference=[[float(x)] for x in REFERENCE.log()])
    packed = torch.stack([policy.new_zeros(3), policy], dim=1).flatten()
    value, metrics = Kl(estimator)(Said(packed, torch.zeros_like(packed)), batch)
    assert metrics["reference_kl"] == pytest.approx(reverse_kl(logits).item(), abs=1e-12)
    return (batch.share * value).sum()


def reverse_kl(logits: Tensor) -> Tensor:
    policy = logits.log_softmax(0)
    return (policy.exp() * (policy - REFERENCE.log())).sum()


def forward_kl(logits: Tensor) -> Tensor:
    return (REFERENCE * (REFERENCE.log() - logits.log_softmax(0))).sum()


def gradient(value: Tensor, logits: Tensor) -> Tensor:
    return torch.autograd.grad(value, logits)[0]


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_k1_and_k3_have_the_right_value(estimator: str) -> None:
    logits = make_logits()
    assert expectation(estimator, logits).item() == pytest.approx(reverse_kl(logits).item(), abs=1e-12)


def test_k2_has_a_biased_value_but_the_gradient_of_the_reverse_kl() -> None:
    logits = make_logits()
    value = expectation("k2", logits)
    assert abs(value.item() - reverse_kl(logits).item()) > 1e-2
    torch.testing.assert_close(gradient(value, logits), gradient(reverse_kl(logits), logits), rtol=0, atol=1e-12)


def test_k3_has_the_gradient_of_the_forward_kl() -> None:
    logits = make_logits()
    expected = gradient(forward_kl(logits), logits)
    torch.testing.assert_close(gradient(expectation("k3", logits), logits), expected, rtol=0, atol=1e-12)


def test_k1_has_no_gradient_on_average() -> None:
    logits = make_logits()
    torch.testing.assert_close(
        gradient(expectation("k1", logits), logits), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(("estimator", "value"), [("k1", 0.6931472), ("k2", 0.2402265), ("k3", 0.1931472)])
def test_one_token_by_hand(estimator: str, value: float) -> None:
    # pi = .5, reference = .25: d = log 2; d^2 / 2 = .2402265; 1/2 - 1 + log 2 = .1931472.
    batch = make_batch([[0.0]], reference=[[log(0.25)]])
    loss, _ = Kl(estimator)(say([[log(0.5)]]), batch)
    assert written(batch, loss) == pytest.approx([value], abs=1e-7)


def test_refuses_an_unknown_estimator() -> None:
    with pytest.raises(ConfigurationError, match="k4"):
        Kl("k4")


def test_another_policy_may_be_stayed_near() -> None:
    """k3 = exp(-d) - 1 + d with d = log(0.5 / 0.25), from the policy before the step and not from the reference."""
    batch = make_batch([[0.0]], reference=[[log(0.125)]])
    batch.fill("proximal", batch.logprobs["reference"] + log(2.0) * batch.trainable)
    loss, metrics = Kl("k3", policy="proximal")(say([[log(0.5)]]), batch)
    assert written(batch, loss) == pytest.approx([0.5 - 1 + log(2)])
    assert metrics["proximal_kl"] == pytest.approx(log(2))
    assert Kl(policy="proximal").needs == frozenset({Logprobs("proximal")}) and Kl().needs == {Logprobs("reference")}
    with pytest.raises(ConfigurationError, match="has no policy"):
        Kl(policy="behaviour")
