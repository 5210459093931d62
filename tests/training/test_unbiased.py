"""Policy gradients against full enumeration of a tiny token space."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from strop.roles import Advantage, Loss
from strop.training.advantages.group_relative import GroupMean, GroupStandard, LeaveOneOut
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.cispo import Cispo
from strop.training.losses.clip import Clip
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import ConstantLength
from tests.building import Said, advantages_of, make_batch, make_group
from tests.training.tiny_policy import REWARDS, SEQUENCES, exact_gradient, parameters, probability, token_logprobs


def group_loss(theta: Tensor, group: tuple[tuple[int, ...], ...], advantage: Advantage, loss: Loss) -> Tensor:
    """The step's loss if exactly these rollouts were drawn: token sums, mean over rollouts."""
    drawn = make_group([REWARDS[y] for y in group], lengths=[2] * len(group))
    advantage([drawn])
    given = [value for value in advantages_of(drawn) if value is not None]
    logprobs = [token_logprobs(theta, y) for y in group]
    share = [list(shares) for shares in ConstantLength(1)([drawn]).values()]
    batch = make_batch([values.tolist() for values in logprobs], given, share=share)
    prompt = theta.new_zeros(1)
    packed = torch.cat([part for values in logprobs for part in (prompt, values)])
    per_token, _ = loss(Said(packed, torch.zeros_like(packed)), batch)
    return (batch.share * per_token).sum()


def expected_gradient(theta: Tensor, size: int, advantage: Advantage, loss: Loss) -> Tensor:
    """Of minus the loss, over all groups of `size` independent rollouts."""
    total = theta.new_zeros(())
    for group in itertools.product(SEQUENCES, repeat=size):
        weight = torch.stack([probability(theta, y) for y in group]).prod().detach()
        total = total - weight * group_loss(theta, group, advantage, loss)
    return torch.autograd.grad(total, theta)[0]


@pytest.mark.parametrize("loss", [Reinforce(), Clip(), Cispo()], ids=["reinforce", "clip", "cispo"])
def test_leave_one_out_is_unbiased(loss: Loss) -> None:
    # On-policy the ratio is 1, so all three losses have the same gradient.
    theta = parameters()
    torch.testing.assert_close(
        expected_gradient(theta, 2, LeaveOneOut(), loss), exact_gradient(theta), rtol=0, atol=1e-12
    )


def test_group_mean_is_unbiased_up_to_its_known_factor() -> None:
    theta = parameters(1)
    expected = expected_gradient(theta, 2, GroupMean(), Reinforce())
    torch.testing.assert_close(expected, exact_gradient(theta) / 2, rtol=0, atol=1e-12)  # (G - 1) / G = 1 / 2


def test_group_standard_points_elsewhere() -> None:
    theta = parameters(2)
    expected, exact = expected_gradient(theta, 2, GroupStandard(), Reinforce()), exact_gradient(theta)
    cosine = torch.nn.functional.cosine_similarity(expected.flatten(), exact.flatten(), dim=0)
    assert 0.5 < float(cosine) < 0.999


def test_importance_weights_make_other_samples_count_right() -> None:
    # One token, three answers with rewards (1, 0, .5); samples of mu, gradient of pi's expected reward.
    logits = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    behavior = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    rewards = torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64)
    policy = logits.log_softmax(0)
    exact = torch.autograd.grad((policy.exp() * rewards).sum(), logits, retain_graph=True)[0]

    batch = make_batch([[float(x)] for x in behavior.log()], rewards.tolist(), share=[[float(x)] for x in behavior])
    packed = torch.stack([policy.new_zeros(3), policy], dim=1).flatten()
    loss, _ = Reinforce()(Said(packed, torch.zeros_like(packed)), batch)

    def gradient(cap: float) -> Tensor:
        weighed = -(batch.share * Truncated(cap)(packed, batch) * loss).sum()
        return torch.autograd.grad(weighed, logits, retain_graph=True)[0]

    torch.testing.assert_close(gradient(cap=100.0), exact, rtol=0, atol=1e-12)
    assert not torch.allclose(gradient(cap=1.0), exact, atol=1e-3)  # truncation trades variance for bias
