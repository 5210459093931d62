from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.h_dpo import HDpo
from strop.training.losses.preference_pairs import Dpo
from tests.building import Said, make_batch, say, written

REFERENCE = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


def test_neutral_it_is_dpo_bit_for_bit() -> None:
    policy = [[-1.0, -0.3], [-2.0], [-0.7], [-1.2, -0.1]]
    batch = make_batch(
        policy, groups=[0, 0, 1, 1], rewards=[1.0, 0.0, 0.0, 1.0], reference=[[-0.5] * 2, [-1], [-2], [-1] * 2]
    )
    ours, theirs = say(policy), say(policy)
    one, two = HDpo(1.0, 0.3)(ours, batch), Dpo(0.3)(theirs, batch)
    one[0].sum().backward()
    two[0].sum().backward()
    assert torch.equal(one[0], two[0]) and one[1] == two[1]
    assert written(batch, ours.logprobs.grad) == written(batch, theirs.logprobs.grad)


def test_at_the_reference_the_margin_is_not_0() -> None:
    # (alpha - 1) * beta * (lpf_c - lpf_r) = -0.5 * 2 * (-1 + 3) = -2.
    batch = make_batch([[-1.0], [-3.0]], rewards=[1.0, 0.0], reference=[[-1.0], [-3.0]])
    output = say([[-1.0], [-3.0]])
    value, metrics = HDpo(0.5, 2.0)(output, batch)
    (batch.share * value).sum().backward()
    assert metrics["margin"] == pytest.approx(-2.0)
    slope = 1 / (1 + float(torch.tensor(-2.0).exp()))  # s(2)
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.5 * 2 * slope, 0.5 * 2 * slope], rel=1e-6)


def fit(rewards: list[float], alpha: float, beta: float) -> list[float]:
    """The minimiser over all pairs of three answers with Bradley-Terry labels, each side as often as it wins."""
    theta = REFERENCE.log().clone().requires_grad_()
    optimizer = torch.optim.LBFGS([theta], max_iter=500, tolerance_grad=1e-13, tolerance_change=1e-16)

    def pair_loss(better: int, worse: int) -> Tensor:
        batch = make_batch([[0.0], [0.0]], rewards=[1.0, 0.0], reference=[[log(REFERENCE[i])] for i in (better, worse)])
        own, nothing = theta.log_softmax(0), theta.new_zeros(())
        logprobs = torch.stack([nothing, own[better], nothing, own[worse]])
        value, _ = HDpo(alpha, beta)(Said(logprobs, torch.zeros_like(logprobs)), batch)
        return (batch.share * value).sum()

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = theta.new_zeros(())
        for one in range(3):
            for other in range(3):
                wins = 1 / (1 + float(torch.tensor(rewards[other] - rewards[one], dtype=torch.float64).exp()))
                total = total + wins * pair_loss(one, other) if one != other else total
        total.backward()
        return total

    optimizer.step(closure)
    return theta.detach().softmax(0).tolist()


def test_the_minimiser_is_the_closed_form() -> None:
    """reference^(1 / alpha) * exp(r / (alpha * beta)), normalised."""
    assert fit([1.0, 0.0, 0.5], 0.8, 0.5) == pytest.approx([0.881456, 0.038208, 0.080336], abs=1e-5)
    assert fit([0.0, 0.0, 0.0], 0.5, 0.5) == pytest.approx([0.657895, 0.236842, 0.105263], abs=1e-5)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"groups of exactly 2 rollouts, got \[3\]"):
        HDpo()(say([[-1.0]] * 3), make_batch([[-1.0]] * 3, reference=[[-1.0]] * 3))
    with pytest.raises(ConfigurationError, match="reference"):
        HDpo()(say([[-1.0]] * 2), make_batch([[-1.0]] * 2))
