"""B-Coder's second stage (strop.recipes.value.b_coder) by hand: a backup with the reference's favourite."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.value.b_coder import ConservativeQ
from strop.training.batch import Batch
from tests.building import Said, make_batch, written


def scene(
    logits: Tensor, reference: list[list[float]], tokens: list[int], values: list[float], temperature: float = 1.0
) -> tuple[Batch, Said]:
    """One rollout of reward 1; raw logits [N, V] at its tokens, and the reference's."""
    batch = make_batch([[0.0] * len(tokens)], rewards=[1.0])
    batch.tokens = torch.tensor([0, *tokens])
    batch.temperature = torch.full_like(batch.share, temperature)
    batch.values = torch.tensor([0.0, *values], dtype=torch.float64)
    own = torch.cat([torch.zeros(1, logits.shape[1], dtype=torch.float64), logits]) / temperature
    theirs = torch.tensor([[0.0] * logits.shape[1], *reference], dtype=torch.float64)
    logprobs = own.log_softmax(-1).gather(1, batch.tokens.unsqueeze(1)).squeeze(1)
    return batch, Said(logprobs, torch.zeros_like(logprobs), own, batch.tokens, {"reference": theirs})


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_two_steps_by_hand(temperature: float) -> None:
    """z(s0) = (0, 2), action 0: gap -2; z(s1) = (1, 0), action 0: gap 0, and the reference likes 1 best: gap -1.

    alpha .5, discount .9, V = (.2, .4): Q0 = -.8, goal .9 * (-.5 + .4) = -.09; Q1 = .4, goal 1.
    """
    logits = torch.tensor([[0.0, 2.0], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    batch, output = scene(logits, [[5.0, 0.0], [0.0, 3.0]], [0, 0], [0.2, 0.4], temperature)
    value, metrics = ConservativeQ(alpha=0.5, discount=0.9)(output, batch)
    assert written(batch, value) == pytest.approx([0.71**2, 0.6**2])
    assert metrics["q_gap"] == pytest.approx(-0.5) and metrics["q_error"] == pytest.approx((0.71**2 + 0.6**2) / 2)
    value.sum().backward()  # type: ignore[no-untyped-call]
    # d (goal - Q)^2 = -2 (goal - Q) alpha d(z_a - max z); the goal has none, and Q none where a is the likeliest
    step = 2 * 0.71 * 0.5
    torch.testing.assert_close(logits.grad, torch.tensor([[-step, step], [0.0, 0.0]], dtype=torch.float64))


def test_demonstrations_are_pulled_to_the_likeliest_and_imitated_beside_it() -> None:
    """Gap -2 costs .1 * 2, log-probability log(1 / (1 + e^2)) costs half of itself; only where nobody sampled."""
    logits = torch.tensor([[0.0, 2.0]], dtype=torch.float64)
    own, output = scene(logits, [[1.0, 0.0]], [0], [0.3])
    (plain,) = written(own, ConservativeQ()(output, own)[0])
    assert plain == pytest.approx((1 - (-2 + 0.3)) ** 2)
    taught, output = scene(logits, [[1.0, 0.0]], [0], [0.3])
    taught.versions = torch.full_like(taught.versions, -1)
    (shown,) = written(taught, ConservativeQ()(output, taught)[0])
    assert shown - plain == pytest.approx(0.1 * 2 + 0.5 * math.log(1 + math.exp(2)))


def test_values_are_required() -> None:
    batch, output = scene(torch.zeros(1, 2, dtype=torch.float64), [[0.0, 0.0]], [0], [0.0])
    batch.values = None
    with pytest.raises(ConfigurationError, match="first stage"):
        ConservativeQ()(output, batch)
