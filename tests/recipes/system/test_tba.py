from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.system.tba import TrajectoryBalance
from strop.training.reductions.means import SequenceMean
from tests.building import Said, make_batch, make_group, say, written
from tests.training.tiny_policy import REWARDS, SEQUENCES, parameters, token_logprobs


def test_hand_worked_loss_and_gradients() -> None:
    # log pi (-1, -2), reference (-1.5, -1.5), R (1, 0), beta 0.5: d = (-1.5, -0.5), mean -1, squares 0.25 each.
    batch = make_batch([[-9.0], [-9.0]], rewards=[1.0, 0.0], reference=[[-1.5], [-1.5]])
    output = say([[-1.0], [-2.0]])
    value, metrics = TrajectoryBalance(beta=0.5)(output, batch)
    (batch.share * value).sum().backward()
    assert written(batch, value) == pytest.approx([0.25, 0.25])
    assert written(batch, output.logprobs.grad) == pytest.approx([-0.5, 0.5])
    assert metrics["log_normaliser"] == pytest.approx(1.0)


def test_it_is_zero_exactly_where_the_surplus_is_constant() -> None:
    # R (1, 0), beta 2: the optimum has log-ratios that differ by 1 / 2; another group does not matter.
    batch = make_batch([[0.0]] * 4, groups=[0, 0, 1, 1], rewards=[1.0, 0.0, 5.0, 1.0], reference=[[-1.0]] * 4)
    value, _ = TrajectoryBalance(beta=2.0)(say([[-0.75], [-1.25], [-2.0], [-4.0]]), batch)
    assert written(batch, value) == pytest.approx([0.0] * 4, abs=1e-30)
    moved, _ = TrajectoryBalance(beta=2.0)(say([[-0.75], [-1.0], [-2.0], [-4.0]]), batch)
    assert written(batch, moved)[:2] != [0.0, 0.0] and written(batch, moved)[2:] == pytest.approx([0.0, 0.0], abs=1e-30)


def loss_of(theta: Tensor, reference: Tensor, group: list[tuple[int, ...]], beta: float) -> Tensor:
    """The loss of one group of off-policy rollouts, with the real reduction."""
    logprobs = [token_logprobs(theta, y) for y in group]
    sampled = make_group([REWARDS[y] for y in group], lengths=[2] * len(group))
    batch = make_batch(
        [[-99.0, -99.0] for _ in group],  # off-policy
        rewards=[REWARDS[y] for y in group],
        reference=[token_logprobs(reference, y).tolist() for y in group],
        share=[list(share) for share in SequenceMean()([sampled]).values()],
    )
    packed = torch.cat([part for values in logprobs for part in (theta.new_zeros(1), values)])
    value, _ = TrajectoryBalance(beta)(Said(packed, torch.zeros_like(packed)), batch)
    return (batch.share * value).sum()


def test_its_gradient_is_reinforce_on_the_regularised_reward() -> None:
    # = -(2 / beta) * mean_k (r_k - mean r) grad log pi_k with r = R - beta log(pi / reference), for any group.
    theta, reference, beta, group = parameters(1), parameters(2).detach(), 0.3, SEQUENCES[1:6]
    found = torch.autograd.grad(loss_of(theta, reference, group, beta), theta)[0]
    total = torch.stack([token_logprobs(theta, y).sum() for y in group])
    anchor = torch.stack([token_logprobs(reference, y).sum() for y in group])
    rewards = torch.tensor([REWARDS[y] for y in group]) - beta * (total - anchor).detach()
    reinforce = torch.autograd.grad(((rewards - rewards.mean()) * total).mean(), theta)[0]
    torch.testing.assert_close(found, -2 / beta * reinforce, rtol=1e-6, atol=1e-8)


def test_off_policy_groups_alone_lead_to_the_optimum() -> None:
    # Groups are sampled uniformly, never from the policy; the optimum is reference * exp(R / beta) / Z.
    beta, reference, theta = 0.5, parameters(4).detach(), parameters(5)
    optimizer = torch.optim.Adam([theta], lr=0.05)
    random = torch.Generator().manual_seed(0)
    for _ in range(600):
        chosen = torch.randperm(9, generator=random)[:5].tolist()
        optimizer.zero_grad()
        loss_of(theta, reference, [SEQUENCES[i] for i in chosen], beta).backward()
        optimizer.step()
    target = torch.stack([token_logprobs(reference, y).sum() + REWARDS[y] / beta for y in SEQUENCES]).softmax(0)
    found = torch.stack([token_logprobs(theta, y).sum().exp() for y in SEQUENCES]).detach()
    start = torch.stack([token_logprobs(parameters(5), y).sum().exp() for y in SEQUENCES]).detach()
    assert float((start - target).abs().max()) > 0.1
    torch.testing.assert_close(found, target, rtol=0, atol=1e-4)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"beta > 0, last_beta > 0 .* got 0"):
        TrajectoryBalance(beta=0.0)
    with pytest.raises(ConfigurationError, match="reference"):
        TrajectoryBalance()(say([[log(0.5)]]), make_batch([[0.0]]))


def test_beta_is_annealed_linearly_and_then_constant() -> None:
    loss = TrajectoryBalance(beta=0.012, last_beta=0.004, beta_steps=500)
    assert [loss.beta_at(step) for step in (0, 250, 500, 900)] == pytest.approx([0.012, 0.008, 0.004, 0.004])
    assert TrajectoryBalance(beta=0.3).beta_at(77) == 0.3
    with pytest.raises(ConfigurationError, match="last_beta > 0"):
        TrajectoryBalance(last_beta=0.0)
