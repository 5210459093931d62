from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.vcpo import MinimumVariance
from tests.building import make_batch, say, written
from tests.training.tiny_policy import REWARDS, SEQUENCES, exact_gradient, parameters, probability, token_logprobs


def advantages(weights: list[float], norms: list[float], rewards: list[float]) -> list[float]:
    """R - b for a group of one-token rollouts: the advantages times the deviation of the rewards."""
    batch = make_batch([[0.0] for _ in weights], rewards=rewards)
    batch.score_norms = torch.tensor(norms, dtype=torch.float64)
    total = torch.tensor([log(weight) for weight in weights], dtype=torch.float64)
    found = MinimumVariance()._advantages(total, batch.score_norms, batch)
    return (found * (batch.rewards.std(correction=0) + 1e-8)).tolist()


def test_hand_worked_baselines() -> None:
    # w (2, 1), equal norms, R (1, 0): b = 4 / 5.
    assert advantages([2.0, 1.0], [1.0, 1.0], [1.0, 0.0]) == pytest.approx([0.2, -0.8])
    # on-policy with equal norms b is the mean: 0.5 of (1, 0, 0.5).
    assert advantages([1.0] * 3, [3.0] * 3, [1.0, 0.0, 0.5]) == pytest.approx([0.5, -0.5, 0.0])
    # norms^2 (1, 3), R (1, 0): b = 1 / 4.
    assert advantages([1.0, 1.0], [1.0, 3.0], [1.0, 0.0]) == pytest.approx([0.75, -0.25])


def test_the_baseline_minimises_the_weighted_square() -> None:
    weights, norms, rewards = [0.3, 2.0, 1.1, 0.7], [1.0, 0.2, 5.0, 2.0], [1.0, 0.0, 0.25, 0.5]
    best = rewards[0] - advantages(weights, norms, rewards)[0]

    def square(baseline: float) -> float:
        terms = zip(weights, norms, rewards, strict=True)
        return sum(w * w * norm * (reward - baseline) ** 2 for w, norm, reward in terms)

    assert square(best) < min(square(best - 1e-3), square(best + 1e-3))


def test_equal_rewards_give_advantages_of_exactly_zero() -> None:
    assert advantages([0.1, 7.0, 3.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.1]) == [0.0, 0.0, 0.0]


def test_huge_weights_and_zero_norms_stay_finite() -> None:
    assert all(abs(each) <= 1 for each in advantages([1e30, 1e-30], [1.0, 1.0], [1.0, 0.0]))
    assert advantages([1.0, 1.0], [0.0, 0.0], [1.0, 0.0]) == pytest.approx([0.5, -0.5])  # no norms: the mean


def test_weights_are_of_whole_rollouts_and_capped() -> None:
    # Token ratios 2 * 2 = 4 and 4 * 4 = 16, capped at 8; equal norms: b = (4^2 * 1 + 16^2 * 0) / (4^2 + 16^2) = 1 / 17.
    batch = make_batch([[log(0.1)] * 2, [log(0.1)] * 2], rewards=[1.0, 0.0])
    batch.score_norms = torch.ones(2, dtype=torch.float64)
    output = say([[log(0.2)] * 2, [log(0.4)] * 2])
    value, metrics = MinimumVariance()(output, batch)
    value.sum().backward()
    deviation = 0.5
    expected = [-4 * (16 / 17) / deviation] * 2 + [8 * (1 / 17) / deviation] * 2
    assert written(batch, output.logprobs.grad) == pytest.approx(expected, rel=1e-6)
    assert metrics == pytest.approx({"capped_share": 0.5})


def test_untruncated_weights_and_an_independent_baseline_are_unbiased() -> None:
    # E_mu[w (R - b) grad log pi] is the gradient of E_pi[R] for any b that does not depend on the rollout.
    theta, sampler = parameters(0), parameters(9).detach()
    for baseline in (0.0, 0.7):
        estimate: Tensor = torch.zeros_like(theta)
        for y in SEQUENCES:
            logprob = token_logprobs(theta, y).sum()
            weight = (logprob.detach() - token_logprobs(sampler, y).sum()).exp()
            score = torch.autograd.grad(logprob, theta)[0]
            estimate += probability(sampler, y) * weight * (REWARDS[y] - baseline) * score
        torch.testing.assert_close(estimate, exact_gradient(theta), rtol=0, atol=1e-12)


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="score_norms"):
        MinimumVariance()(say([[-1.0]]), make_batch([[-1.0]]))
