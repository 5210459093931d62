"""What kernels learned for more families (windows, soft caps, norms, gelu), against plain torch in higher precision.

On a GPU, or in Triton's own interpreter: `TRITON_INTERPRET=1 pytest tests/gpu/test_families.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.kernels import attention, head_norms, logprobs, norm, swiglu
from strop.kernels.attention import Heads, Varlen
from strop.kernels.decode import PAGE, Plain, Rotation, TokenPlaces
from strop.kernels.head_norms import HeadNorms
from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import attention as triton_attention  # noqa: E402
from strop.kernels.triton import decode as triton_decode  # noqa: E402
from strop.kernels.triton import head as triton_head  # noqa: E402
from strop.kernels.triton import head_norms as triton_head_norms  # noqa: E402
from strop.kernels.triton import norm as triton_norm  # noqa: E402
from strop.kernels.triton import swiglu as triton_swiglu  # noqa: E402
from strop.kernels.triton.attention_back import attend_back  # noqa: E402

NARROW = torch.float16 if IS_INTERPRETED else torch.bfloat16  # whose products the interpreter knows
BOUND = 1e-2
SIGHTS = [(20, None), (None, 2.0), (90, 2.0), (1, None)]  # windows and caps


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(dtype).to(DEVICE)


def error(found: Tensor, expected: Tensor) -> float:
    """Relative, and NaN where anything is."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@pytest.mark.parametrize(("window", "cap"), SIGHTS)
@pytest.mark.parametrize("size", [16, 256])
def test_what_a_trainer_sees(window: int | None, cap: float | None, size: int) -> None:
    """Two sequences that share a prefix: blocks that are seen whole, in part and not at all."""
    heads, prefix = Heads(2, 1, size), 30
    sizes = np.array([70, 150])
    count = int(sizes.sum()) - prefix
    plan = Varlen(sizes, np.concatenate((np.arange(70), np.arange(prefix), np.arange(70, count))), DEVICE)
    fused = drawn(count, heads.width, dtype=NARROW)
    pull = drawn(count, heads.queries * heads.size, dtype=NARROW, seed=1)
    output, level = triton_attention.attend(fused, heads, plan, 0.3, window, cap)
    exact = attention.reference_attend(fused.double(), heads, plan, 0.3, window, cap)
    assert error(output, exact[0]) < BOUND and error(level, exact[1]) < BOUND
    found = attend_back(pull, fused, output, level, heads, plan, 0.3, None, window, cap)
    expected = attention.reference_attend_back(pull.double(), fused.double(), *exact, heads, plan, 0.3, window, cap)
    for one, other in zip(heads.split(found), heads.split(expected), strict=True):
        if float(other.norm()) > 1e-6:  # of a token that sees itself alone, nothing pulls at queries and keys
            assert error(one, other) < 2 * BOUND


@pytest.mark.parametrize(("window", "cap"), SIGHTS)
def test_what_an_engine_sees(window: int | None, cap: float | None) -> None:
    kernels, width, rows, size = triton_decode.Kernels(), 10, 3, 16
    tables = torch.arange(rows * width, device=DEVICE).view(rows, width).int()
    pages = [drawn(rows * width, 2, PAGE, size, seed=seed) for seed in (0, 1)]
    positions = torch.tensor([3, 70, 158], device=DEVICE).int()
    where = TokenPlaces(torch.arange(rows, device=DEVICE).int(), positions, tables)
    query = drawn(rows, 4, size, seed=2)
    ours, theirs = (each.attend(query, *pages, where, 0.3, window, cap) for each in (kernels, Plain()))
    assert error(ours, theirs) < 1e-5
    at = torch.arange(60, 140, device=DEVICE).int()
    runs = torch.tensor([[0, 60, 64], [64, 124, 16]], device=DEVICE).int()
    stretch = TokenPlaces(torch.ones_like(at), at, tables, runs)
    query = drawn(80, 4, size, seed=3)
    ours, theirs = (each.attend(query, *pages, stretch, 0.3, window, cap) for each in (kernels, Plain()))
    assert error(ours, theirs) < 1e-5


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_norms_of_heads(is_wide: bool, offset: float) -> None:
    """Of each, or of all of a token; three query heads and one of keys do not fill a block."""
    queries, keys, size, tokens = 3, 1, 16, 5
    weights = [drawn(count * size if is_wide else size, seed=count) for count in (queries, keys)]
    angle = drawn(40, size // 2)
    rotation = Rotation(angle.cos(), angle.sin(), *weights, 1e-6, offset)
    tables = torch.arange(2 * tokens, device=DEVICE).view(tokens, 2).int()
    where = TokenPlaces(torch.arange(tokens, device=DEVICE).int(), torch.arange(tokens, device=DEVICE).int(), tables)
    heads = drawn(tokens, queries + 2 * keys, size)
    stores = []
    for operations in (triton_decode.Kernels(), Plain()):
        pages = [torch.zeros(2 * tokens, keys, PAGE, size, device=DEVICE) for _ in "kv"]
        stores.append((operations.store(heads, *pages, where, rotation), *pages))
    assert all(error(one, other) < 1e-5 for one, other in zip(*stores, strict=True))


@pytest.mark.parametrize("is_wide", [True, False])
def test_norms_of_heads_in_training(is_wide: bool) -> None:
    """Forward and backward, and forward bit by bit as an engine does it."""
    heads, tokens = Heads(5, 2, 16), 7
    weights = [drawn(count * heads.size if is_wide else heads.size, seed=count) for count in (5, 2)]
    norms, angle = HeadNorms(weights[0], weights[1], 1e-6, 1.0), drawn(tokens, heads.size // 2)
    angles, fused = (angle.cos(), angle.sin()), drawn(tokens, heads.width)
    turned = triton_head_norms.forward(fused, heads, norms, angles)
    exact = [HeadNorms(*(each.double() for each in weights), 1e-6, 1.0), tuple(each.double() for each in angles)]
    assert error(turned, head_norms.reference_forward(fused.double(), heads, *exact)) < 1e-5
    pull = drawn(tokens, heads.width, seed=3)
    wanted = head_norms.reference_backward(pull.double(), fused.double(), heads, *exact)
    found = triton_head_norms.backward(pull, fused, heads, norms, angles)
    assert all(error(one, other) < 1e-5 for one, other in zip(found, wanted, strict=True))
    tables = torch.arange(tokens, device=DEVICE).view(tokens, 1).int()
    where = TokenPlaces(torch.arange(tokens, device=DEVICE).int(), torch.arange(tokens, device=DEVICE).int(), tables)
    keys, values = (torch.zeros(tokens, heads.keys, PAGE, heads.size, device=DEVICE, dtype=NARROW) for _ in "kv")
    narrow = [each.to(NARROW) for each in weights]
    rotation = Rotation(*angles, narrow[0], narrow[1], 1e-6, 1.0)
    query = triton_decode.Kernels().store(fused.to(NARROW).view(tokens, -1, heads.size), keys, values, where, rotation)
    trained = heads.split(triton_head_norms.forward(fused.to(NARROW), heads, norms, angles))
    at = torch.arange(tokens, device=DEVICE)
    assert torch.equal(query, trained[0])
    assert torch.equal(keys[at, :, at], trained[1])
    assert torch.equal(values[at, :, at], trained[2])


def test_a_norm_that_counts_from_one() -> None:
    residual, delta, weight = drawn(9, 24), drawn(9, 24, seed=1), drawn(24, seed=2)
    found = triton_norm.forward(residual, delta, weight, 1e-5, torch.float32, offset=1.0)
    exact = norm.reference_forward(residual, delta, weight, 1e-5, torch.float32, 1.0)
    assert all(error(one, other) < 1e-5 for one, other in zip(found, exact, strict=True))
    pull, d_normed = drawn(9, 24, seed=3), drawn(9, 24, seed=4)
    back = triton_norm.backward(pull, d_normed, residual, delta, weight, found[2], 1.0)
    wanted = norm.reference_backward(pull, d_normed, residual, delta, weight, exact[2], 1.0)
    assert all(error(one, other) < 1e-5 for one, other in zip(back, wanted, strict=True))


def test_gelu() -> None:
    gate_up, pull = drawn(5, 48), drawn(5, 24, seed=1)
    assert error(triton_swiglu.forward(gate_up, True), swiglu.reference_forward(gate_up.double(), True)) < 1e-5
    found = triton_swiglu.backward(gate_up, pull, True)
    wanted = swiglu.reference_backward(gate_up.double(), pull.double(), True)
    assert all(error(one, other) < 1e-5 for one, other in zip(found, wanted, strict=True))


def test_capped_logits() -> None:
    hidden, weight = drawn(5, 64, dtype=NARROW), drawn(130, 64, dtype=NARROW, seed=1)
    tokens, temperature = torch.arange(5, device=DEVICE), torch.linspace(0.5, 2, 5, device=DEVICE)
    found = torch.full((3, 5), float("nan"), device=DEVICE)
    triton_head.statistics(hidden, weight, tokens, temperature, found, 4.0)
    expected, scores = found.double(), attention.capped(hidden.double() @ weight.double().t(), 4.0)
    logprobs.reference_statistics(scores, tokens, temperature.double(), expected)
    assert error(found, expected) < 1e-5
    pulls = torch.stack((drawn(5), drawn(5, seed=1), expected[1].float(), expected[2].float(), temperature))
    exact = logprobs.reference_gradient(scores, tokens, pulls.double(), torch.float64, 4.0)
    assert error(triton_head.gradient(hidden, weight, tokens, pulls, 4.0), exact) < BOUND
