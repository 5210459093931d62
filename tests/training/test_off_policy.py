"""Corrections against full enumeration: samples of one policy, gradient of another's expected reward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.recipes.objective.vcpo import MinimumVariance
from strop.recipes.system.areal import Decoupled
from strop.roles import Correction, Loss
from strop.training.batch import Batch
from strop.training.corrections.importance_weights import Masked, SequenceMasked, SequenceTruncated, Truncated
from strop.training.losses.aipo import Aipo
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.objective import Objective
from tests.building import Said, lay_out, make_batch
from tests.training.tiny_policy import REWARDS, SEQUENCES, exact_gradient, parameters, probability, token_logprobs

ENDLESS = 1e6


def sampled_from(sampler: Tensor, theta: Tensor, middle: Tensor | None = None) -> tuple[Batch, Said]:
    """All nine sequences as rollouts, each with its probability under the sampler as its share: sums are
    expectations.
    """
    rewards = [REWARDS[y] for y in SEQUENCES]
    probabilities = [[float(probability(sampler, y))] * 2 for y in SEQUENCES]
    batch = make_batch(
        [token_logprobs(sampler, y).tolist() for y in SEQUENCES], rewards, rewards=rewards, share=probabilities
    )
    if middle is not None:
        frozen = lay_out([token_logprobs(middle, y).tolist() for y in SEQUENCES], float("nan"))
        batch.logprobs |= dict.fromkeys(("proximal", "old", "averaged"), frozen)
    packed = torch.cat([part for y in SEQUENCES for part in (theta.new_zeros(1), token_logprobs(theta, y))])
    return batch, Said(packed, torch.zeros_like(packed))


def gradient(theta: Tensor, sampler: Tensor, loss: Loss, correction: Correction | None = None) -> Tensor:
    """Expected, of minus the objective."""
    batch, output = sampled_from(sampler, theta, middle=parameters(5).detach())
    total, _ = Objective((loss,), correction)(output, batch)
    return torch.autograd.grad(-total, theta)[0]


@pytest.mark.parametrize("correction", [SequenceTruncated(ENDLESS), SequenceMasked(ENDLESS)], ids=repr)
def test_whole_products_are_unbiased(correction: Correction) -> None:
    theta, sampler = parameters(0), parameters(9).detach()
    torch.testing.assert_close(
        gradient(theta, sampler, Reinforce(), correction), exact_gradient(theta), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("loss", "correction"),
    [
        (Reinforce(), None),
        (Reinforce(), Truncated(ENDLESS)),  # ignores how the prefix was reached
        (Reinforce(), SequenceTruncated(1.0)),
        (Aipo(ENDLESS), None),
    ],
    ids=repr,
)
def test_nothing_less_is(loss: Loss, correction: Correction | None) -> None:
    theta, sampler = parameters(0), parameters(9).detach()
    found, exact = gradient(theta, sampler, loss, correction), exact_gradient(theta)
    assert float((found - exact).norm() / exact.norm()) > 0.05


@pytest.mark.parametrize(
    ("loss", "correction"),
    [
        (Reinforce(), Truncated(ENDLESS)),
        (Aipo(ENDLESS), None),
        (Aipo(ENDLESS, is_detached=False), None),
        (Decoupled(ENDLESS, ENDLESS, cap=ENDLESS), None),
        (Clip(ENDLESS, ENDLESS, anchor="old"), Masked(0.0, ENDLESS, target="old")),
        (Clip(ENDLESS, ENDLESS), None),
    ],
    ids=repr,
)
def test_with_one_token_every_ratio_without_bounds_is_unbiased(loss: Loss, correction: Correction | None) -> None:
    theta = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    sampler = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    middle = torch.tensor([0.6, 0.1, 0.3], dtype=torch.float64)
    rewards = torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64)
    policy = theta.log_softmax(0)
    exact = torch.autograd.grad((policy.exp() * rewards).sum(), theta, retain_graph=True)[0]
    batch = make_batch([[float(x)] for x in sampler.log()], rewards.tolist(), share=[[float(x)] for x in sampler])
    batch.logprobs |= dict.fromkeys(("proximal", "old"), lay_out([[float(x)] for x in middle.log()], float("nan")))
    packed = torch.stack([policy.new_zeros(3), policy], dim=1).flatten()
    total, _ = Objective((loss,), correction)(Said(packed, torch.zeros_like(packed)), batch)
    torch.testing.assert_close(torch.autograd.grad(-total, theta)[0], exact, rtol=0, atol=1e-12)


def test_vcpo_weighs_and_centres_like_its_formula() -> None:
    # mean_i min(w_i, C) (R_i - b) / std(R) g_i, worked out beside it from whole-rollout scores.
    theta, sampler = parameters(0), parameters(9).detach()
    batch, output = sampled_from(sampler, theta)
    scores = [torch.autograd.grad(token_logprobs(theta, y).sum(), theta)[0] for y in SEQUENCES]
    batch.score_norms = torch.stack([score.square().sum() for score in scores])
    total, _ = Objective((MinimumVariance(cap=1.5),))(output, batch)
    found = torch.autograd.grad(-total, theta)[0]

    weights = torch.stack([(probability(theta, y) / probability(sampler, y)).detach() for y in SEQUENCES])
    squares = weights.square() * batch.score_norms
    baseline = (squares * batch.rewards).sum() / squares.sum()
    advantage = weights.clamp(max=1.5) * (batch.rewards - baseline) / batch.rewards.std(correction=0)
    probabilities = torch.stack([probability(sampler, y) for y in SEQUENCES])
    expected = sum(
        (c * p * s for c, p, s in zip(advantage, probabilities, scores, strict=True)), torch.zeros_like(theta)
    )
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_metrics_tell_mismatch_and_staleness_apart() -> None:
    theta, sampler = parameters(0), parameters(9).detach()
    batch, output = sampled_from(sampler, theta, middle=sampler)  # the same weights in both engines
    _, metrics = Objective((Reinforce(),))(output, batch)
    assert metrics["mismatch"] == 0 and metrics["staleness"] == pytest.approx(metrics["drift"])
    batch, output = sampled_from(sampler, theta, middle=theta.detach())  # fresh data, another engine
    _, metrics = Objective((Reinforce(),))(output, batch)
    assert metrics["staleness"] == 0 and metrics["mismatch"] == pytest.approx(metrics["drift"])
    del batch.logprobs["old"]
    assert "mismatch" not in Objective((Reinforce(),))(output, batch)[1]


def test_alive_tokens_are_those_with_credit_and_a_gradient() -> None:
    # Of four tokens one is masked, one is clipped, one has no advantage to lose: 2 of 4 are alive.
    batch = make_batch([[0.0, 0.0, 0.0, 0.0]])
    batch.fill("averaged", lay_out([[-2.0, 0.0, 0.0, 0.0]], float("nan")))
    batch.advantages = lay_out([[1.0, 1.0, 0.0, 1.0]])
    leaf = lay_out([[-2.0, 0.5, 0.0, 0.0]]).requires_grad_()
    objective = Objective((Clip(anchor="averaged"),), Masked(target="averaged"))
    _, metrics = objective(Said(leaf, torch.zeros_like(leaf)), batch)
    assert metrics["alive_share"] == pytest.approx(0.5)
