"""Operations of the trainer in plain torch: what they compute, and that their gradients by hand are those of that.

Kernels are compared with these in `tests/gpu`, on a GPU or in Triton's interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from strop.kernels import attention, norm, swiglu
from strop.kernels.attention import Heads, Varlen
from strop.kernels.logprobs import token_logprobs
from strop.models.layers.attention import Packed, Scoring

HEADS = Heads(4, 2, 6)
SHARED = np.array([4, 3, 5]), np.array([0, 1, 2, 3, 0, 1, 4, 0, 1, 2, 5, 6])  # lengths, and the tokens behind them


def drawn(*shape: int, seed: int = 0, learns: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_(learns)


@pytest.mark.parametrize("has_delta", [True, False])
@pytest.mark.parametrize("has_sum", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_norm(has_delta: bool, has_sum: bool, offset: float) -> None:
    residual, weight = drawn(5, 8), drawn(8, seed=1)
    delta = drawn(5, 8, seed=2) if has_delta else None
    total = residual if delta is None else residual + delta
    expected = F.rms_norm(total, (8,), weight + offset, 1e-5)
    state, normed, scale = norm.forward(residual, delta, weight, 1e-5, torch.float64, offset)
    torch.testing.assert_close(state, total)
    torch.testing.assert_close(normed, expected)
    d_normed, d_sum = drawn(5, 8, seed=3, learns=False), drawn(5, 8, seed=4, learns=False) if has_sum else None
    pulled = (expected * d_normed).sum() + (0 if d_sum is None else (total * d_sum).sum())
    d_residual, d_weight = torch.autograd.grad(pulled, (residual, weight))
    found = norm.backward(d_sum, d_normed, residual, delta, weight, scale, offset)
    for ours, theirs in zip(found, (d_residual, d_residual, d_weight, normed), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_normalised_state_is_rounded_and_the_stream_is_not() -> None:
    state, normed, _ = norm.forward(
        torch.randn(3, 8), torch.randn(3, 8).bfloat16(), torch.ones(8), 1e-5, torch.bfloat16
    )
    assert (state.dtype, normed.dtype) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("is_gelu", [False, True])
def test_gated_activations(is_gelu: bool) -> None:
    gate_up, pull = drawn(4, 10), drawn(4, 5, seed=1, learns=False)
    gate, up = gate_up.chunk(2, -1)
    expected = (F.gelu(gate, approximate="tanh") if is_gelu else F.silu(gate)) * up
    torch.testing.assert_close(swiglu.forward(gate_up, is_gelu), expected)
    d_gate_up, product = swiglu.backward(gate_up, pull, is_gelu)
    torch.testing.assert_close(product, expected)
    torch.testing.assert_close(d_gate_up, *torch.autograd.grad(expected, gate_up, pull))


def test_rotation_is_that_of_transformers() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    fused, angle = drawn(7, 8 * 6, learns=False), drawn(7, 3, learns=False)
    before = fused.clone()
    query, key, value = (part.clone() for part in HEADS.split(fused))
    cosine, sine = (torch.cat((each, each), -1).unsqueeze(0) for each in (angle.cos(), angle.sin()))
    theirs = apply_rotary_pos_emb(query.transpose(0, 1).unsqueeze(0), key.transpose(0, 1).unsqueeze(0), cosine, sine)
    attention.rotate(fused, angle.cos(), angle.sin(), HEADS)
    for ours, their in zip(HEADS.split(fused), (*(each[0].transpose(0, 1) for each in theirs), value), strict=True):
        torch.testing.assert_close(ours, their)
    attention.rotate(fused, angle.cos(), angle.sin(), HEADS, is_back=True)
    torch.testing.assert_close(fused, before)


@pytest.mark.parametrize(("window", "cap"), [(None, None), (2, None), (1, None), (None, 0.5), (3, 0.5)])
@pytest.mark.parametrize(("sizes", "places"), [SHARED, (np.array([4, 3]), np.arange(7))], ids=["shared", "apart"])
def test_attention_over_various_lengths(
    sizes: np.ndarray, places: np.ndarray, window: int | None, cap: float | None
) -> None:
    """Against attention over padded blocks, which is proven against transformers' own."""
    plan, packed = Varlen(sizes, places, "cpu"), Packed(sizes, "cpu", places)
    fused, pull = drawn(7, 8 * 6), drawn(7, 4 * 6, seed=1, learns=False)
    expected = packed.attend(0, *HEADS.split(fused), Scoring(0.4, window, cap)).flatten(1)
    output, level = attention.attend(fused.detach(), HEADS, plan, 0.4, window, cap)
    torch.testing.assert_close(output, expected)
    (gradient,) = torch.autograd.grad(expected, fused, pull)
    found = attention.attend_back(pull, fused.detach(), output, level, HEADS, plan, 0.4, None, window, cap)
    torch.testing.assert_close(found, gradient)


def test_a_plan_of_various_lengths() -> None:
    """Queries are the tokens computed, in order; a sequence that is another's prefix has none left."""
    plan = Varlen(np.array([4, 2, 5]), np.array([0, 1, 2, 3, 0, 1, 0, 1, 2, 4, 5]), "cpu")
    assert plan.own.tolist() == [4, 2] and plan.sizes.tolist() == [4, 5]
    # first query, queries, first key, place: the second sequence sees more, so it comes first
    assert plan.queries.tolist() == [[4, 2, 4, 3], [0, 4, 0, 0]]
    assert plan.keys.tolist() == [[4, 5, 0, 4, 2, 3], [0, 4, 0, 0, 4, 0]]
    assert plan.gather is not None and plan.gather.tolist() == [0, 1, 2, 3, 0, 1, 2, 4, 5]
    assert plan.bounds is not None and plan.bounds.tolist() == [0, 2, 4, 6, 7, 8, 9]
    whole = Varlen(np.array([3, 2]), np.arange(5), "cpu")
    assert whole.gather is None and whole.queries.tolist() == [[0, 3, 0, 0], [3, 2, 3, 0]]


def test_long_sequences_are_cut() -> None:
    plan = Varlen(np.array([300]), np.arange(300), "cpu")
    assert plan.queries.tolist() == [[256, 44, 0, 256], *([at, 64, 0, at] for at in (192, 128, 64, 0))]
    assert plan.keys[0].tolist() == [0, 64, 0, 0, 300, 0] and plan.keys[-1].tolist() == [256, 44, 256, 0, 300, 0]


@pytest.mark.parametrize(("chunk", "cap"), [(2, None), (100, None), (2, 1.5)])
def test_logprobs(chunk: int, cap: float | None) -> None:
    hidden, weight, tokens = drawn(5, 4), drawn(9, 4, seed=1), torch.tensor([0, 8, 3, 3, 1])
    temperature = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.7], dtype=torch.float64)

    def fused(hidden: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return token_logprobs(hidden, weight.detach(), weight, tokens, temperature, chunk, cap)

    logits = hidden @ weight.t()
    logits = logits if cap is None else cap * torch.tanh(logits / cap)
    expected = (logits / temperature.unsqueeze(1)).log_softmax(-1)
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
