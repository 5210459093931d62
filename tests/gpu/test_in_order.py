"""Products that add in one order: against plain torch on a GPU or in Triton's own interpreter (`TRITON_INTERPRET=1`).

On a GPU also to the last bit: whatever else is in the batch, and as the trainer's product of many rows.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from strop.kernels.adapted import Adapter
from strop.kernels.decode import Plain
from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import adapted as few_adapted  # noqa: E402
from strop.kernels.triton import in_order, norm  # noqa: E402

NARROW = torch.float16 if IS_INTERPRETED else torch.bfloat16  # whose products the interpreter knows
BOUND = 1e-2  # of |difference| / |reference|
needs_gpu = pytest.mark.skipif(IS_INTERPRETED, reason="bits are those of a GPU")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator).to(DEVICE, NARROW)


def matrix(outer: int, inner: int, is_turned: bool) -> Tensor:
    """[outer, inner], either side in one piece of memory."""
    return drawn(inner, outer).t() if is_turned else drawn(outer, inner)


def error(got: Tensor, want: Tensor) -> float:
    return float((got.double() - want.double()).norm() / want.double().norm())


@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize("rows", [1, 16, 33])
@pytest.mark.parametrize("has_bias", [True, False])
def test_products(rows: int, is_turned: bool, has_bias: bool) -> None:
    state, weight = drawn(rows, 256), matrix(64, 256, is_turned)
    bias = drawn(64) if has_bias else None
    want = Plain().linear(state, weight, bias)
    got = in_order.product(state, weight, bias)
    assert got.dtype == NARROW and error(got, want) < BOUND
    whole = in_order.product(state, weight, bias, torch.float32)
    exact = Plain().linear(state.double(), weight.double(), None if bias is None else bias.double())
    assert whole.dtype == torch.float32 and error(whole, exact) < 1e-5
    for is_gelu in (True, False):
        got = in_order.gated(state, weight, bias, is_gelu)
        assert got.shape == (rows, 32) and error(got, Plain().gated(state, weight, bias, None, is_gelu)) < BOUND


@pytest.mark.parametrize("rows", [1, 16, 20])
@pytest.mark.parametrize("has_bias", [True, False])
def test_adapters_beside_products(rows: int, has_bias: bool) -> None:
    """Of two layers that read the same input, with ranks that fill no block."""
    state, weight, bias = drawn(rows, 256), matrix(128, 256, True), drawn(128) if has_bias else None
    adapter = Adapter.empty(state, [(7, 96), (13, 32)], NARROW, 0.5)
    for part in adapter.parts:
        part.copy_(drawn(*part.shape))
    want = Plain().linear(state, weight, bias, adapter)
    assert error(want, Plain().linear(state, weight, bias)) > 0.5  # it adds something
    assert error(few_adapted.adapted(state, weight, bias, adapter), want) < BOUND
    got = few_adapted.adapted(state, weight, bias, adapter, is_gated=True)
    assert error(got, Plain().gated(state, weight, bias, adapter, is_gelu=False)) < BOUND


@needs_gpu
@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize("outer,inner", [(4608, 3584), (3584, 18944), (1536, 1536)])
def test_a_row_is_the_same_alone_among_others_and_in_a_large_product(outer: int, inner: int, is_turned: bool) -> None:
    state, weight = drawn(4096, inner), matrix(outer, inner, is_turned)
    whole = torch.mm(state, weight.t())
    for rows in (1, 5, 16, 32, 64, 200, 512):
        assert torch.equal(in_order.product(state[:rows], weight, None), whole[:rows])


@needs_gpu
@pytest.mark.parametrize("ranks,inner", [(96, 3584), (32, 18944), (8, 576)])
def test_the_inner_product_of_an_adapter_is_the_same_in_engine_and_trainer(ranks: int, inner: int) -> None:
    state, down = drawn(4096, inner), drawn(ranks, inner)
    whole = in_order.product(state, down, None)
    assert error(whole, torch.mm(state.float(), down.float().t())) < BOUND
    for rows in (1, 16, 64, 700):
        assert torch.equal(in_order.product(state[:rows], down, None), whole[:rows])


@needs_gpu
@pytest.mark.parametrize("size", [576, 1536, 3584, 5120])
def test_norms_of_few_rows_are_those_of_many(size: int) -> None:
    residual, delta, weight = drawn(4096, size).float(), drawn(4096, size, seed=1), drawn(size)
    whole = norm.forward(residual, delta, weight, 1e-6, NARROW)
    few = norm.forward(residual[:16], delta[:16], weight, 1e-6, NARROW)
    for one, other in zip(few, whole, strict=True):
        assert torch.equal(one, other[:16])
