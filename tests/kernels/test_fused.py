"""Fused operations: what they compute, and that their hand-written gradients are those of that."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from strop.attention import Packed
from strop.kernels import attention
from strop.kernels.attention import Heads, Varlen, rotary_attention_by_plan
from strop.kernels.linear import embed, linear
from strop.kernels.logprobs import token_logprobs
from strop.kernels.norm import add_rms_norm
from strop.kernels.swiglu import swiglu_linear

HEADS = Heads(4, 2, 6)


def drawn(*shape: int, seed: int = 0, learns: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_(learns)


@pytest.mark.parametrize("has_delta", [True, False])
def test_norm(has_delta: bool) -> None:
    residual, weight = drawn(5, 8), drawn(8, seed=1)
    delta = drawn(5, 8, seed=2) if has_delta else None

    def fused(residual: Tensor, weight: Tensor, *delta: Tensor) -> tuple[Tensor, Tensor]:
        return add_rms_norm(residual, delta[0] if delta else None, weight, 1e-5, torch.float64)

    given = (residual, weight) if delta is None else (residual, weight, delta)
    state, normed = fused(*given)
    total = residual if delta is None else residual + delta
    torch.testing.assert_close(state, total)
    torch.testing.assert_close(normed, F.rms_norm(total, (8,), weight, 1e-5))
    assert gradcheck(fused, given)


def test_the_last_norm_gets_no_gradient_for_the_stream() -> None:
    residual, delta, weight = drawn(3, 8), drawn(3, 8, seed=1), drawn(8, seed=2)
    assert gradcheck(lambda *given: add_rms_norm(*given, 1e-5, torch.float64)[1], (residual, delta, weight))
    assert gradcheck(lambda *given: add_rms_norm(*given, 1e-5, torch.float64)[0], (residual, delta, weight))


def test_the_normalised_state_is_rounded_and_the_stream_is_not() -> None:
    state, normed = add_rms_norm(torch.randn(3, 8), torch.randn(3, 8).bfloat16(), torch.ones(8), 1e-5, torch.bfloat16)
    assert (state.dtype, normed.dtype) == (torch.float32, torch.bfloat16)


def test_swiglu() -> None:
    gate_up, weight = drawn(4, 10), drawn(3, 5, seed=1)

    def fused(gate_up: Tensor, weight: Tensor) -> Tensor:
        return swiglu_linear(gate_up, weight.detach(), weight)

    gate, up = gate_up.chunk(2, -1)
    torch.testing.assert_close(fused(gate_up, weight), F.linear(F.silu(gate) * up, weight))
    assert gradcheck(fused, (gate_up, weight))


@pytest.mark.parametrize("has_bias", [True, False])
def test_several_linear_layers_are_one(has_bias: bool) -> None:
    state, weights = drawn(4, 3), [drawn(2, 3, seed=1), drawn(5, 3, seed=2)]
    biases = [drawn(2, seed=3), drawn(5, seed=4)] if has_bias else []

    def fused(state: Tensor, *given: Tensor) -> Tensor:
        cast, bias = torch.cat(given[:2]).detach(), torch.cat(given[2:]).detach() if has_bias else None
        return linear(state, cast, bias, given)

    apart = [F.linear(state, weight, biases[i] if has_bias else None) for i, weight in enumerate(weights)]
    torch.testing.assert_close(fused(state, *weights, *biases), torch.cat(apart, 1))
    assert gradcheck(fused, (state, *weights, *biases))


def test_weights_that_do_not_learn_get_nothing() -> None:
    state, weight = drawn(4, 3), drawn(2, 3, learns=False)
    linear(state, weight, None, [weight]).sum().backward()
    assert state.grad is not None and weight.grad is None


def test_a_token_read_twice_learns_twice() -> None:
    tokens, weight = torch.tensor([1, 3, 1]), drawn(5, 2)
    assert gradcheck(lambda table: embed(tokens, table.detach(), table, torch.float64), (weight,))


def test_rotation_is_that_of_transformers() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    fused, angle = drawn(7, 8 * 6, learns=False), drawn(7, 3, learns=False)
    query, key, value = (part.clone() for part in HEADS.split(fused))
    cosine, sine = (torch.cat((each, each), -1).unsqueeze(0) for each in (angle.cos(), angle.sin()))
    theirs = apply_rotary_pos_emb(query.transpose(0, 1).unsqueeze(0), key.transpose(0, 1).unsqueeze(0), cosine, sine)
    attention.rotate(fused, angle.cos(), angle.sin(), HEADS)
    for ours, their in zip(HEADS.split(fused), (*(each[0].transpose(0, 1) for each in theirs), value), strict=True):
        torch.testing.assert_close(ours, their)


def test_rotary_attention() -> None:
    fused, angle = drawn(7, 8 * 6), drawn(7, 3, learns=False)
    plan = Packed([4, 3])

    def run(fused: Tensor) -> Tensor:
        return rotary_attention_by_plan(fused.clone(), angle.cos(), angle.sin(), HEADS, plan, 0.4, 0, None)

    assert gradcheck(run, (fused,))


def test_shared_keys_add_up_going_back() -> None:
    """The gradient of turning, repeating and summing, against autograd through the same steps."""
    sizes, places = np.array([4, 3, 5]), np.array([0, 1, 2, 3, 0, 1, 4, 0, 1, 2, 5, 6])
    plan = Varlen(sizes, places, "cpu")
    assert plan.gather is not None and plan.gather.tolist() == places.tolist()
    fused, angle = drawn(7, 8 * 6), drawn(7, 3, learns=False)
    turned = fused.clone()
    turned = torch.cat([attention._turned(p, angle.cos(), angle.sin()) for p in HEADS.split(turned)[:2]], 1)
    query, key = turned[:, :4], turned[:, 4:].index_select(0, plan.gather)
    value = HEADS.split(fused)[2].index_select(0, plan.gather)
    pulls = drawn(7, 4, 6, learns=False), drawn(12, 2, 6, learns=False), drawn(12, 2, 6, seed=1, learns=False)
    (expected,) = torch.autograd.grad((query, key, value), fused, pulls)
    found = attention.rotate_back(*pulls, angle.cos(), angle.sin(), plan.order, plan.bounds)
    torch.testing.assert_close(found, expected)


def test_a_plan_of_various_lengths() -> None:
    """Queries are the tokens computed, in order; a sequence that is another's prefix has none left."""
    plan = Varlen(np.array([4, 2, 5]), np.array([0, 1, 2, 3, 0, 1, 0, 1, 2, 4, 5]), "cpu")
    assert plan.query_ends.tolist() == [0, 4, 6]
    assert plan.key_ends.tolist() == [0, 4, 9]
    assert (plan.max_queries, plan.max_keys) == (4, 5)
    assert plan.bounds is not None and plan.bounds.tolist() == [0, 2, 4, 6, 7, 8, 9]
    whole = Varlen(np.array([3, 2]), np.arange(5), "cpu")
    assert whole.gather is None and whole.query_ends.tolist() == whole.key_ends.tolist() == [0, 3, 5]


@pytest.mark.parametrize("chunk", [2, 100])
def test_logprobs(chunk: int) -> None:
    hidden, weight, tokens = drawn(5, 4), drawn(9, 4, seed=1), torch.tensor([0, 8, 3, 3, 1])
    temperature = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.7], dtype=torch.float64)

    def fused(hidden: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return token_logprobs(hidden, weight.detach(), weight, tokens, temperature, chunk)

    expected = (hidden @ weight.t() / temperature.unsqueeze(1)).log_softmax(-1)
    logprobs, entropy = fused(hidden, weight)
    torch.testing.assert_close(logprobs, expected.gather(1, tokens.unsqueeze(1)).squeeze(1))
    torch.testing.assert_close(entropy, -(expected.exp() * expected).sum(-1))
    assert gradcheck(fused, (hidden, weight))


def test_logprobs_of_no_rows() -> None:
    hidden, weight = drawn(0, 4), drawn(9, 4, seed=1)
    none = torch.zeros(0, dtype=torch.int64)
    logprobs, _ = token_logprobs(hidden, weight.detach(), weight, none, none.double(), 4)
    logprobs.sum().backward()
    assert weight.grad is not None and not weight.grad.any()
