"""Compiled operations of the trainer: what plain torch computes in float64, with any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.kernels import attention, norm, swiglu
from strop.kernels.attention import Heads, Varlen
from strop.kernels.cpu import train

pytestmark = pytest.mark.skipif(train.compiled() is None, reason="there is no C compiler")
ROWS = 150  # more than two partial sums


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def wide(*tensors: Tensor | None) -> Any:
    return [None if each is None else each.double() for each in tensors]


def check(found: Any, expected: Any) -> None:
    """Within a few roundings of float32, relative to the largest."""
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).abs().max()) <= 2e-6 * max(1.0, float(other.abs().max()))


def on_threads(function: Callable[[], Any]) -> tuple[Any, Any]:
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(function())
    finally:
        torch.set_num_threads(before)
    return found[0], found[1]


@pytest.mark.parametrize("width", [5, 48])
@pytest.mark.parametrize("has_delta", [True, False])
@pytest.mark.parametrize("has_sum", [True, False])
def test_norm(width: int, has_delta: bool, has_sum: bool) -> None:
    residual, weight, pull = drawn(ROWS, width), drawn(width), drawn(ROWS, width, seed=1)
    delta = drawn(ROWS, width, seed=2) if has_delta else None
    d_sum = drawn(ROWS, width, seed=3) if has_sum else None
    pulled, d_normed, state, added, factor = wide(d_sum, pull, residual, delta, weight)
    exact = norm.reference_forward(state, added, factor, 1e-5, torch.float64)
    found = norm.forward(residual, delta, weight, 1e-5, torch.float32)
    check(found, exact)
    expected = norm.reference_backward(pulled, d_normed, state, added, factor, exact[2])
    check(norm.backward(d_sum, pull, residual, delta, weight, found[2]), expected)


def test_swiglu() -> None:
    gate_up, pull = drawn(ROWS, 58) * 20, drawn(ROWS, 29)
    check([swiglu.forward(gate_up)], [swiglu.reference_forward(gate_up.double())])
    check(swiglu.backward(gate_up, pull), swiglu.reference_backward(gate_up.double(), pull.double()))


def test_rotation() -> None:
    heads, angle = Heads(4, 2, 6), drawn(ROWS, 3)
    fused = drawn(ROWS, heads.width)
    for is_back in (False, True):
        exact = fused.double()
        attention.reference_rotate(exact, angle.cos().double(), angle.sin().double(), heads, is_back)
        attention.rotate(fused, angle.cos(), angle.sin(), heads, is_back)
        check([fused], [exact])


def siblings(lengths: list[int], shared: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences that begin with the same tokens: their lengths, and the token behind each of theirs."""
    own = np.split(np.arange(shared, shared + sum(lengths)), np.cumsum(lengths)[:-1])
    places = [np.concatenate((np.arange(shared), each)) for each in own]
    return np.array([len(each) for each in places]), np.concatenate(places)


PLANS = {
    "shared": siblings([3, 1, 9, 40, 5], 7),
    "long": siblings([130, 300], 20),
    "apart": (np.array([1, 17, 33]), np.arange(51)),
}


@pytest.mark.parametrize("heads", [Heads(4, 2, 16), Heads(3, 3, 32), Heads(2, 1, 48)], ids=str)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_attention(plan: tuple[np.ndarray, np.ndarray], heads: Heads) -> None:
    varlen, tokens = Varlen(*plan, "cpu"), int(plan[1].max()) + 1
    fused, pull = drawn(tokens, heads.width), drawn(tokens, heads.queries * heads.size, seed=1)
    exact = attention.reference_attend(fused.double(), heads, varlen, 0.3)
    found, again = on_threads(lambda: attention.attend(fused, heads, varlen, 0.3))
    check(found, exact)
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))
    back, again = on_threads(lambda: attention.attend_back(pull, fused, found[0], found[1], heads, varlen, 0.3))
    expected = attention.reference_attend_back(pull.double(), fused.double(), *exact, heads, varlen, 0.3)
    check([back], [expected])
    assert torch.equal(back, again)


def test_scores_of_hidden_keys_may_be_far_above_those_seen() -> None:
    heads, varlen = Heads(1, 1, 16), Varlen(np.array([20]), np.arange(20), "cpu")
    fused = torch.ones(20, heads.width)
    fused[-1] = 1e4  # the last key, which only the last query sees
    output, level = attention.attend(fused, heads, varlen, 1.0)
    assert output.isfinite().all() and level.isfinite().all()
    torch.testing.assert_close(output[:-1], torch.ones(19, 16))
    back = attention.attend_back(torch.ones(20, 16), fused, output, level, heads, varlen, 1.0)
    assert back.isfinite().all()


def test_it_is_used_where_it_can_be() -> None:
    narrow, other, turned = drawn(4, 6).bfloat16(), drawn(4, 6).double(), drawn(6, 4).t()
    assert train.serving(drawn(4, 6), None) is not None
    assert [train.serving(drawn(4, 6), each) for each in (narrow, other, turned)] == [None] * 3
    assert attention.takes(Heads(4, 2, 32)) and not attention.takes(Heads(4, 2, 24))
