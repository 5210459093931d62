from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.rapo import TemperedKl
from tests.building import Said, make_batch


def value_of(
    theta: Tensor, reference: Tensor, token: int, reward: float, loss: TemperedKl
) -> tuple[Tensor, dict[str, float]]:
    """Loss and metrics of one rollout of one token."""
    batch = make_batch([[0.0]], rewards=[reward])
    batch.tokens = torch.tensor([0, token])
    own, other = (torch.stack([torch.zeros_like(each), each]) for each in (theta, reference))
    logprobs = own.log_softmax(-1)[[0, 1], batch.tokens] * batch.trainable
    value, metrics = loss(Said(logprobs, torch.zeros_like(logprobs), own, batch.tokens, {"reference": other}), batch)
    return value.sum(), metrics


@pytest.mark.parametrize("reward", [0.0, 0.6, 1.0])
def test_its_expected_gradient_is_that_of_the_forward_kl_to_the_tempered_reference(reward: float) -> None:
    theta = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)
    found = torch.zeros_like(theta)
    for token, probability in enumerate(theta.softmax(0).detach().tolist()):
        value, _ = value_of(theta, reference, token, reward, TemperedKl(cap=1e9))
        found += probability * torch.autograd.grad(value, theta)[0]
    target = ((0.5 + 0.5 * reward) * reference.log_softmax(0)).log_softmax(0)
    own = theta.log_softmax(0)
    (expected,) = torch.autograd.grad((target.exp() * (target - own)).sum(), theta)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_the_metric_is_the_sampled_divergence_and_the_cap_counts() -> None:
    # policy (1/4, 3/4), reference uniform: u = 2 at token 0; u log u - u + 1 = 0.386294. The cap is 1.5.
    theta = torch.tensor([0.25, 0.75], dtype=torch.float64).log().requires_grad_()
    value, metrics = value_of(theta, torch.zeros(2, dtype=torch.float64), 0, 1.0, TemperedKl(cap=1.5))
    assert float(value.detach()) == pytest.approx(1.5 * 1.3862944)
    assert metrics == pytest.approx({"tempered_kl": 0.3862944, "capped_share": 1.0})


def test_the_optimum_against_a_reward_by_hand() -> None:
    # max pi_1 - KL((1/2, 1/2) || pi): pi_1 = 1 / sqrt 2.
    theta = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    half = torch.zeros(2, dtype=torch.float64)
    for _ in range(2000):
        probabilities = theta.softmax(0).detach()
        gain = sum(
            float(probabilities[token]) * value_of(theta, half, token, 1.0, TemperedKl(cap=1e9))[0] for token in (0, 1)
        )
        (gradient,) = torch.autograd.grad(gain - theta.softmax(0)[0], theta)
        theta = (theta - 0.5 * gradient).detach().requires_grad_()
    assert theta.softmax(0).tolist() == pytest.approx([0.7071068, 0.2928932], abs=1e-5)


@pytest.mark.parametrize(("reward", "clipped"), [(3.0, 1.0), (-2.0, 0.0)])
def test_rewards_are_clipped_to_0_and_1(reward: float, clipped: float) -> None:
    theta = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64)
    reference = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)
    values = [float(value_of(theta, reference, 1, each, TemperedKl())[0]) for each in (reward, clipped, 0.5)]
    assert values[0] == values[1] != values[2]


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 <= floor <= 1, got 2"):
        TemperedKl(floor=2.0)
