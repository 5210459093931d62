from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor

from strop.errors import ConfigurationError
from strop.recipes.objective.otr import OneToken
from strop.training.arithmetic.token_draws import token_keys, uniforms
from tests.building import Said, make_batch


def scene(logits: Tensor, tokens: list[int]) -> tuple[Said, object]:
    batch = make_batch([[0.0] * (len(tokens) - 1)])
    batch.tokens = torch.tensor(tokens)
    return Said(*[torch.zeros(len(tokens), dtype=torch.float64)] * 2, logits, batch.tokens), batch


def test_the_loss_of_fixed_samples_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # pi = (.25, .5, .125, .125), y = 0, samples y, a, b, y: 2 / 4 * 1.386294 = 0.693147; b = -0.1 adds
    # -(-0.1 / 4) (log .5 + log .125) = -0.0693147.
    probabilities = torch.tensor([[0.1, 0.5, 0.8, 0.2]], dtype=torch.float64)
    monkeypatch.setattr("strop.recipes.objective.otr.uniforms", lambda keys, count: probabilities)
    logits = torch.tensor([[0.25, 0.5, 0.125, 0.125]], dtype=torch.float64).log()
    tokens, keys = torch.tensor([0]), torch.tensor([7])
    assert OneToken(4, 0.0)._sampled(logits, tokens, keys).tolist() == [pytest.approx([0.6931472, 0.5])]
    assert OneToken(4)._sampled(logits, tokens, keys)[0, 0] == pytest.approx(0.6931472 - 0.0693147)
    assert log(4) == pytest.approx(1.3862944)


def test_in_expectation_it_is_imitation_times_the_probability() -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    output, batch = scene(logits, [0, 2, 1])
    OneToken(samples=200_000, miss=0.0)(output, batch)[0].sum().backward()  # type: ignore[arg-type]
    assert logits.grad is not None
    scores = logits.log_softmax(-1)
    right = torch.stack([scores[1, 2], scores[2, 1]])
    (expected,) = torch.autograd.grad(-(right.exp().detach() * right).sum(), logits)
    torch.testing.assert_close(logits.grad, expected, rtol=0, atol=3e-3)


def test_what_is_never_said_is_never_learned() -> None:
    logits = torch.tensor([[0.0, 0.0], [0.0, -1e4]], dtype=torch.float64, requires_grad=True)
    output, batch = scene(logits, [0, 1])
    value, metrics = OneToken(miss=0.0)(output, batch)  # type: ignore[arg-type]
    value.sum().backward()
    assert metrics["hit_share"] == 0.0 and not logits.grad.any()  # type: ignore[union-attr]


def test_what_is_wrongly_said_is_pushed_down() -> None:
    # Token 0 has 3/4 and is wrong: the expected gradient on its logit is -miss * (3/4 * 1/4) + that of the hits.
    logits = torch.tensor([[0.0, 0.0], [3.0, 1.0]], dtype=torch.float64).log().requires_grad_()
    output, batch = scene(logits, [0, 1])
    OneToken(samples=100_000)(output, batch)[0].sum().backward()  # type: ignore[arg-type]
    hits, misses = 0.25 * 0.75, 0.1 * 0.75 * 0.25
    assert logits.grad is not None
    assert logits.grad[1].tolist() == pytest.approx([hits + misses, -hits - misses], abs=3e-3)


def test_random_numbers_are_splitmix64() -> None:
    """The first three outputs of its published generator for seed 0, their upper 53 bits."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert uniforms(torch.tensor([0]), 3).tolist() == [[(number >> 11) / 2**53 for number in published]]


def test_samples_depend_on_seed_step_rollout_and_position_only() -> None:
    keys = torch.arange(5)
    assert torch.equal(uniforms(keys, 9)[2:4], uniforms(keys[2:4], 9))
    drawn = uniforms(torch.arange(2000), 50)
    assert float(drawn.min()) >= 0 and float(drawn.max()) < 1
    assert float(drawn.mean()) == pytest.approx(0.5, abs=0.005)
    assert float(drawn.var()) == pytest.approx(1 / 12, abs=0.002)
    assert abs(float(torch.corrcoef(drawn[:, :2].T)[0, 1])) < 0.05
    whole, alone = make_batch([[0.0], [0.0, 0.0]]), make_batch([[0.0, 0.0]])
    alone.rollout_ids = ("1",)
    assert token_keys(whole, 0)[2:].tolist() == token_keys(alone, 0).tolist()
    assert len(set(token_keys(whole, 0).tolist())) == 5
    assert not set(token_keys(whole, 0).tolist()) & set(token_keys(whole, 1).tolist())


def test_misuse_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="samples >= 1, got 0"):
        OneToken(samples=0)
