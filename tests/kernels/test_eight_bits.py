"""Products of 8-bit numbers: what eight bits hold, by hand; products and gradients against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from strop.kernels.decode import Plain
from strop.kernels.eight_bits import BLOCK, Product, rounded
from strop.models.layers.eight_bit_linear import held_of


def e4m3() -> list[float]:
    """All numbers that E4M3 holds, from its bits: 4 of exponent (bias 7), 3 of fraction, no infinity."""
    found = {0.0}
    for exponent in range(16):
        for fraction in range(8):
            if exponent == 15 and fraction == 7:
                continue  # not a number
            found.add(fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7))
    return sorted(found | {-each for each in found})


NUMBERS = np.array(e4m3())


def by_hand(block: np.ndarray) -> np.ndarray:
    scale = np.float32(448) / np.float32(max(np.abs(block).max(), 1e-4))
    found = np.zeros_like(block)
    for place in np.ndindex(block.shape):
        wanted = np.float32(block[place]) * scale
        found[place] = NUMBERS[np.abs(NUMBERS - wanted).argmin()] / scale
    return found


def test_numbers_are_the_nearest_that_eight_bits_hold() -> None:
    assert len(NUMBERS) == 253 and NUMBERS.max() == 448
    torch.manual_seed(0)
    matrix = torch.randn(5, 7) * torch.tensor([1e-6, 1e-3, 1.0, 30.0, 1e4]).unsqueeze(1)
    found = rounded(matrix, 2, 3)
    for row in range(0, 5, 2):
        for column in range(0, 7, 3):
            block = (slice(row, row + 2), slice(column, column + 3))
            np.testing.assert_allclose(found[block].numpy(), by_hand(matrix[block].numpy()), rtol=1e-6)
    torch.testing.assert_close(rounded(found, 2, 3), found, rtol=1e-6, atol=0)  # what eight bits hold stays
    assert torch.equal(rounded(torch.zeros(3, 3), 2, 2), torch.zeros(3, 3))


def test_a_block_has_its_own_scale() -> None:
    matrix = torch.ones(2 * BLOCK, BLOCK + 1)
    matrix[0, 0] = 1e6  # its neighbours in the block are lost beside it, those in others are not
    found = held_of(matrix).read()
    assert float(found[1, 1]) != 1 and torch.equal(found[BLOCK:], matrix[BLOCK:])
    assert float(found[0, BLOCK]) == 1


def test_product_and_gradients_against_loops() -> None:
    torch.manual_seed(1)
    state, weight = torch.randn(5, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    pull = torch.randn(5, 4)
    output = Product.apply(state, weight, held_of(weight.detach()), torch.float32)
    output.backward(pull)

    def rows(matrix: torch.Tensor) -> np.ndarray:
        return np.stack([by_hand(row) for row in matrix.detach().numpy()])

    read, held = rows(state), by_hand(weight.detach().numpy())
    np.testing.assert_allclose(output.detach().numpy(), read @ held.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.grad.numpy(), rows(pull) @ held, rtol=1e-5, atol=1e-6)  # type: ignore[union-attr]
    along_tokens = rows(pull.t()) @ rows(torch.from_numpy(read).t()).T
    np.testing.assert_allclose(weight.grad.numpy(), along_tokens, rtol=1e-5, atol=1e-6)  # type: ignore[union-attr]


@pytest.mark.parametrize("has_delta", [False, True])
def test_a_norm_in_eight_bits(has_delta: bool) -> None:
    torch.manual_seed(4)
    residual, delta, weight = torch.randn(5, BLOCK + 9) * 30, torch.randn(5, BLOCK + 9), torch.randn(BLOCK + 9)
    whole = (residual + delta if has_delta else residual).numpy()
    found = Plain().add_norm_encoded(residual, delta if has_delta else None, weight, 1e-6, 1.0)
    np.testing.assert_array_equal(residual.numpy(), whole)
    normed = whole / np.sqrt(np.square(whole).mean(1, keepdims=True) + 1e-6) * (weight.numpy() + 1)
    blocks = [[by_hand(row[:BLOCK]), by_hand(row[BLOCK:])] for row in normed]
    np.testing.assert_allclose(found.read().numpy(), np.stack([np.concatenate(each) for each in blocks]), rtol=1e-5)


def test_it_is_not_the_plain_product() -> None:
    torch.manual_seed(2)
    state, weight = torch.randn(64, 256), torch.randn(32, 256)
    apart = (Product.apply(state, weight, held_of(weight), torch.float32) - state @ weight.t()).norm()
    assert 0.01 < float(apart / (state @ weight.t()).norm()) < 0.1


@pytest.mark.parametrize("count", [1, 3, 64])
def test_a_row_does_not_depend_on_the_others(count: int) -> None:
    torch.manual_seed(3)
    state, weight = torch.randn(64, 200), torch.randn(16, 200)
    held = held_of(weight)
    assert torch.equal(rounded(state, 1, BLOCK)[:count], rounded(state[:count], 1, BLOCK))
    both = (Product.apply(each, weight, held, torch.float32)[:count] for each in (state, state[:count]))
    torch.testing.assert_close(*both, rtol=1e-5, atol=1e-5)
