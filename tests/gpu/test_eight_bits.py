"""Products of 8-bit numbers by kernels, on a GPU that has such or in Triton's interpreter (`TRITON_INTERPRET=1`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.kernels.eight_bits import (
    Eights,
    encode,
    multiplies_eights,
    reference_encode,
    reference_encode_squares,
)
from strop.training.trainers.torch import TorchTrainer
from tests.gpu.test_exact import connected, folder_of, gaps_of, prompts_of, published
from tests.gpu.triton_device import IS_INTERPRETED, triton_device

pytestmark = pytest.mark.gpu
DEVICE = triton_device()
if not (IS_INTERPRETED or multiplies_eights(torch.device(DEVICE))):
    pytest.skip("this GPU multiplies no eight bits", allow_module_level=True)

from strop.kernels.triton import eight_bits, norm, swiglu  # noqa: E402
from strop.kernels.triton.decode import Kernels  # noqa: E402
from strop.kernels.triton.norm_eight_bits import encode_norm  # noqa: E402

SHAPES = [(3, 200, (40,)), (70, 256, (192, 64, 64)), (17, 576, (576, 192))]  # rows, columns, rows of weights


def numbers(*shape: int) -> Tensor:
    """Rows of different sizes."""
    sizes = torch.logspace(-1, 1, shape[0]).unsqueeze(1)
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(shape[0])) * sizes).to(DEVICE)


def squares(rows: tuple[int, ...], size: int, dtype: torch.dtype = torch.float32) -> Eights:
    whole, parts = Eights.squares(rows, size, torch.device(DEVICE))
    for part in parts:
        reference_encode_squares(numbers(len(part.codes), size).to(dtype), part)
    return whole


def is_same(found: Eights, expected: Eights) -> bool:
    """The interpreter loses the carry where a fraction is rounded up to the next power of two, and small numbers."""
    pairs = ((found.scales, expected.scales), (found.codes.float(), expected.codes.float()))
    return max(float((one != other).float().mean()) for one, other in pairs) <= (0.1 if IS_INTERPRETED else 0)


@pytest.mark.parametrize(("count", "size", "rows"), SHAPES)
def test_the_same_codes_as_plain_torch(count: int, size: int, rows: tuple[int, ...]) -> None:
    matrix = numbers(count, size)
    assert is_same(eight_bits.encode(matrix), reference_encode(matrix))
    assert is_same(eight_bits.encode_across(matrix, False), reference_encode(matrix.t()))
    gate_up = matrix.to(torch.float32 if IS_INTERPRETED else torch.bfloat16)
    assert is_same(eight_bits.encode_swiglu(gate_up, False), reference_encode(swiglu.forward(gate_up)))
    held = reference_encode(matrix).read()
    assert is_same(eight_bits.encode_across(matrix, True), reference_encode(held.t()))
    whole, parts = Eights.squares(rows, size, torch.device(DEVICE))
    for part in parts:
        eight_bits.encode_squares(numbers(len(part.codes), size), part)
    assert is_same(whole, squares(rows, size))


@pytest.mark.parametrize(("count", "size", "rows"), SHAPES)
def test_the_same_product_as_plain_torch(count: int, size: int, rows: tuple[int, ...]) -> None:
    """Tensor cores of Hopper cut what they add to 14 bits, which a sum in float32 does not."""
    state, weight = reference_encode(numbers(count, size)), squares(rows, size)
    bias = numbers(1, sum(rows))[0]
    for other in (weight, weight._replace(share=1)):
        found = eight_bits.multiply(state, other, bias, torch.float32)
        expected = state.read().double() @ other.read().double().t() + bias
        gaps = (found - expected).norm(dim=1) / expected.norm(dim=1)
        assert float(gaps.max()) < (1e-6 if IS_INTERPRETED else 1e-3)


@pytest.mark.parametrize("count", [1, 5, 16, 17, 32])
@pytest.mark.parametrize(("size", "rows"), [(200, (40,)), (512, (192, 64, 64)), (1024, (130,))])
def test_products_of_few_rows(count: int, size: int, rows: tuple[int, ...]) -> None:
    """Weights are what has many rows: the sums of other products, whatever number of columns is left over."""
    state, weight, bias = reference_encode(numbers(count, size)), squares(rows, size), numbers(1, sum(rows))[0]
    for other in (weight, weight._replace(share=1)):
        assert eight_bits.is_few(state, other)
        for added in (None, bias):
            found = torch.full((count, sum(rows)), float("nan"), device=DEVICE)
            eight_bits.multiply_few(state, other, added, found)
            expected = state.read().double() @ other.read().double().t() + (0 if added is None else added)
            gaps = (found - expected).norm(dim=1) / expected.norm(dim=1)
            assert float(gaps.max()) < (1e-6 if IS_INTERPRETED else 1e-3)


def test_products_of_few_rows_have_the_bits_of_those_of_many() -> None:
    """Where tensor cores would find others, they are multiplied as many are."""
    state, weight = numbers(48, 512), squares((192, 64), 512)
    whole, part = (reference_encode(each) for each in (state, state[:16]))
    assert eight_bits.is_few(part, weight) and not eight_bits.is_few(whole, weight)
    found, expected = (eight_bits.multiply(each, weight, None, torch.float32) for each in (part, whole))
    assert torch.equal(found, expected[:16])


def test_which_products_are_of_few_rows() -> None:
    """Blocks are taken two at a time, and many columns keep a GPU busy anyway."""
    place = torch.device(DEVICE)
    odd, even = (Eights.empty(16, blocks * 128, place) for blocks in (7, 8))
    assert not eight_bits.is_few(odd, Eights.empty(64, 7 * 128, place))
    narrow, wide = (Eights.empty(count, 8 * 128, place) for count in (132 * 64, 132 * 64 + 1))
    assert eight_bits.is_few(even, narrow) and not eight_bits.is_few(even, wide)
    assert not eight_bits.is_few(Eights.empty(33, 8 * 128, place), narrow)


def test_a_row_depends_on_no_other_and_on_no_tile() -> None:
    """As many as a step of few sequences has, and as many as a trainer's micro-batch."""
    size, most = (384, 130) if IS_INTERPRETED else (3584, 4096)
    matrix, weight = numbers(most, size), squares((256, 128), size)
    whole = eight_bits.multiply(reference_encode(matrix), weight, None, torch.float32)
    for count in (1, 16, 64, 65, 129) if IS_INTERPRETED else (1, 2, 16, 17, 64, 65, 256, 257, 1000, 1024, 1025, 4095):
        part = eight_bits.multiply(reference_encode(matrix[-count:]), weight, None, torch.float32)
        assert is_same_product(part, whole[-count:]), count
    other = eight_bits.multiply(reference_encode(matrix), weight._replace(share=1), None, torch.float32)
    assert is_same_product(other, whole)


def is_same_product(one: Tensor, other: Tensor) -> bool:
    """To the last bit; interpreted, numpy sums in an order of its own, which depends on the processor."""
    if IS_INTERPRETED:
        return bool((one - other).abs().max() <= 1e-5 * other.abs().max())
    return torch.equal(one, other)


def has_same_bits(found: Eights, expected: Eights) -> bool:
    pairs = zip(found[:2], expected[:2], strict=True)
    return found[2:] == expected[2:] and all(torch.equal(e.view(torch.uint8), o.view(torch.uint8)) for e, o in pairs)


@pytest.mark.parametrize("has_delta", [False, True])
@pytest.mark.parametrize("count", [1, 5, 16, 64])
@pytest.mark.parametrize("size", [64, 128, 200, 576, 2048, 4096])
def test_a_norm_in_eight_bits_is_the_norm_and_then_eight_bits(size: int, count: int, has_delta: bool) -> None:
    """Both in bits, and so is the sum that goes on; some rows are of nothing."""
    residual, weight = numbers(count + 1, size)[1:], numbers(1, size)[0].bfloat16()
    residual[1::3] = 0
    delta = numbers(count, size).flip(0).bfloat16() if has_delta else None
    for offset in (0.0, 1.0):
        one, other = residual.clone(), residual.clone()
        normed = norm.forward(one, delta, weight, 1e-6, torch.bfloat16, is_in_place=True, offset=offset)[1]
        found = encode_norm(other, delta, weight, 1e-6, torch.bfloat16, offset)
        assert has_same_bits(found, eight_bits.encode(normed)) and torch.equal(one, other)
        assert torch.equal(one, residual) is not has_delta


def test_a_norm_in_eight_bits_depends_on_no_other_row() -> None:
    """Of many tokens a program looks at several."""
    residual, weight = numbers(1030, 576), numbers(1, 576)[0].bfloat16()
    whole, part = (encode_norm(each, None, weight, 1e-6, torch.bfloat16) for each in (residual, residual[-5:].clone()))
    assert has_same_bits(part, Eights(whole.codes[-5:], whole.scales[:, -5:].contiguous(), 576))


def test_a_decode_step_reads_a_norm_in_eight_bits() -> None:
    residual, delta, weight = numbers(5, 576), numbers(5, 576).bfloat16(), numbers(1, 576)[0].bfloat16()
    other, does = residual.clone(), Kernels()
    found = does.add_norm_encoded(residual, delta, weight, 1e-6, 1.0)
    assert has_same_bits(found, encode(does.add_norm(other, delta, weight, 1e-6, 1.0))) and torch.equal(residual, other)


@pytest.mark.skipif(IS_INTERPRETED, reason="needs a GPU")
@pytest.mark.parametrize("width", [192, 256])
def test_the_trainer_finds_the_logprobs_that_the_engine_gave(width: int, tmp_path: Path) -> None:
    """To the last bit of every product, though one multiplies 48 rows and the other thousands."""
    heads = {"num_attention_heads": width // 64, "num_key_value_heads": 1}
    folder = folder_of(tmp_path, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=6, **heads)
    trainer, engine, prompts = (
        TorchTrainer(device="cuda", matmul_precision="fp8"),
        PagedEngine(rows=48, memory=0.05),
        prompts_of(),
    )
    engine.matmul_precision = "fp8"
    found = published(connected(trainer, engine, folder), engine, prompts)
    for (gaps,) in gaps_of(trainer, prompts, found, "proximal"):
        assert float(gaps.mean()) < 1e-5, gaps.mean()
