from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from strop.recipes.objective.rover import Rover
from strop.training.arithmetic.siblings import following
from strop.training.batch import Batch
from strop.training.losses.reinforce import Reinforce
from tests.building import Said, make_batch, say, written

# ---- theory: a deterministic tree with 0/1 rewards at its leaves


def uniform_values(leaves: dict[tuple[int, ...], float], depth: int, words: int) -> dict[tuple[int, ...], list[float]]:
    """Q of the uniformly random policy at every inner node, in one pass from the leaves up."""
    values: dict[tuple[int, ...], list[float]] = {}
    for level in reversed(range(depth)):
        for node in itertools.product(range(words), repeat=level):
            ends = [(*node, word) for word in range(words)]
            values[node] = [leaves[end] if level == depth - 1 else sum(values[end]) / words for end in ends]
    return values


def test_the_uniform_policys_value_by_hand() -> None:
    leaves = dict(zip(itertools.product(range(2), repeat=2), (1.0, 0.0, 0.0, 0.0), strict=True))
    assert uniform_values(leaves, 2, 2)[()] == [0.5, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_acting_greedily_on_it_is_optimal(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    ends = list(itertools.product(range(3), repeat=4))
    leaves = {end: float(torch.rand((), generator=random) < 0.05) for end in ends}
    values, node = uniform_values(leaves, 4, 3), ()
    while len(node) < 4:
        node = (*node, int(torch.tensor(values[node]).argmax()))
    assert leaves[node] == max(leaves.values())


# ---- loss


def scene(new: Tensor, old: Tensor, tokens: list[list[int]], advantages: list[float]) -> tuple[Batch, Said]:
    """Batch and output from one row of logits per sampled token, rollout by rollout."""
    batch = make_batch([[0.0] * len(each) for each in tokens], advantages)
    batch.tokens = torch.tensor([token for each in tokens for token in (0, *each)])
    rows = batch.trainable.nonzero().squeeze(1)
    own, other = (torch.zeros(len(batch.tokens), 2, dtype=torch.float64).index_copy(0, rows, x) for x in (new, old))
    return batch, Said(
        *[torch.zeros(len(batch.tokens), dtype=torch.float64)] * 2, own, batch.tokens, {"proximal": other}
    )


def test_at_the_old_policy_it_is_reinforce() -> None:
    # One-token rollouts: value A^2, gradient on the log-probability -2 A.
    logits = torch.tensor([[0.2, -0.3]] * 2, dtype=torch.float64, requires_grad=True)
    batch, output = scene(logits, logits.detach(), [[0], [1]], [0.5, -0.5])
    value, _ = Rover()(output, batch)
    (found,) = torch.autograd.grad(value.sum(), logits)
    assert written(batch, value) == pytest.approx([0.25, 0.25])
    scores = logits.log_softmax(-1)
    plain = say([[0.0], [0.0]])
    plain.logprobs = torch.stack([plain.logprobs[0], scores[0, 0], plain.logprobs[2], scores[1, 1]])
    (reinforce,) = torch.autograd.grad(Reinforce()(plain, batch)[0].sum(), logits)
    torch.testing.assert_close(found, 2 * reinforce)


def test_the_target_looks_one_state_ahead_without_gradient() -> None:
    # Second state: log-ratios of new (.7, .3) to old (.8, .2): log .875 and log 1.5; mean 0.1359669. First state: ratio
    # of token 0 is log(.6 / .5). A = 1: L = (log 1.2 - 1 - 0.1359669)^2 + (log 1.5 - 1)^2.
    new = torch.tensor([[0.6, 0.4], [0.7, 0.3]], dtype=torch.float64).log().requires_grad_()
    old = torch.tensor([[0.5, 0.5], [0.8, 0.2]], dtype=torch.float64).log()
    batch, output = scene(new, old, [[0, 1]], [1.0])
    value, metrics = Rover()(output, batch)
    first, second = 0.1823216 - 1.1359669, 0.4054651 - 1
    assert written(batch, value) == pytest.approx([first**2, second**2], rel=1e-6)
    (found,) = torch.autograd.grad(value.sum(), new)
    expected = torch.tensor([[2 * first * 0.4, -2 * first * 0.4], [-2 * second * 0.7, 2 * second * 0.7]])
    torch.testing.assert_close(found, expected.double(), rtol=1e-5, atol=1e-7)
    assert metrics == pytest.approx({"q": (0.1823216 + 0.4054651) / 2, "next_q": 0.1359669 / 2}, rel=1e-6)


def test_following_ends_with_the_rollout() -> None:
    batch = make_batch([[0.0, 0.0], [0.0]])
    values = torch.tensor([9.0, 1.0, 2.0, 9.0, 3.0])
    assert following(values, batch).tolist() == [0.0, 2.0, 0.0, 0.0, 0.0]


def test_repeated_training_finds_the_right_leaf_of_a_tree() -> None:
    """Depth 2, one right leaf of four, uniform rollouts: the policy converges to the path to it."""
    theta = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    paths = [[a, b] for a in range(2) for b in range(2)]
    rewards = [0.0, 0.0, 1.0, 0.0]
    optimizer = torch.optim.SGD([theta], lr=0.2)
    for _ in range(200):
        rows = [row for a, _ in paths for row in (0, 1 + a)]
        old = theta.detach().clone()[rows]
        batch, output = scene(theta[rows], old, paths, [reward - 0.25 for reward in rewards])
        optimizer.zero_grad()
        (batch.share * Rover()(output, batch)[0]).sum().backward()
        optimizer.step()
    found = theta.detach().softmax(-1)
    assert float(found[0, 1] * found[2, 0]) > 0.95
