"""Numbers in few bits: what is cut off is right on average, and what is split can be joined again."""

from __future__ import annotations

import pytest
import torch

from strop.models.optimizers.low_precision import BLOCK, EightBits, Halved, joined, rng_of, rounded_at_random, split

CPU = torch.device("cpu")


def numbers(count: int = 20_000) -> torch.Tensor:
    """From 1e-12 to 1e6 in size, of both signs."""
    stream = torch.Generator().manual_seed(0)
    return torch.randn(count, generator=stream) * torch.logspace(-12, 6, count)


def test_a_split_number_loses_nothing() -> None:
    values = torch.cat([numbers(), torch.tensor([0.0, -0.0, 1.0, -1.0, 1 + 2.0**-8, -1 - 2.0**-8, 1e-40])])
    high, rest = split(values)
    assert torch.equal(joined(high, rest).view(torch.int32), values.view(torch.int32))
    nearest = values.to(torch.bfloat16)
    differs = (high != nearest).nonzero().squeeze(1).tolist()
    assert {float(values[at]) for at in differs} == {1 + 2.0**-8, -1 - 2.0**-8}  # halves go up in size, not to even
    assert float(high[differs[0]]) == 1 + 2.0**-7


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rounding_by_probability_is_right_on_average(sign: float) -> None:
    """Between 1 and 1 + 2^-7 a number goes up as often as it is far from 1, by enumeration of what may be added."""
    share, low, high = 0.3125, sign, sign * (1 + 2.0**-7)
    value = torch.tensor(low + share * (high - low))
    bits = value.view(torch.int32) + torch.arange(1 << 16, dtype=torch.int32)
    every = (bits >> 16).to(torch.int16).view(torch.bfloat16)
    assert set(every.tolist()) == {low, high} and every.double().mean() == value.double()
    count = 1 << 18
    found = rounded_at_random(value.expand(count), rng_of(CPU, "test")).double()
    assert set(found.tolist()) == {low, high}
    assert float((found == high).double().mean()) == pytest.approx(share, abs=5 * (share * (1 - share) / count) ** 0.5)


def test_what_fits_stays_as_it_is() -> None:
    fits = numbers().to(torch.bfloat16).float()
    assert torch.equal(rounded_at_random(fits, rng_of(CPU, 1)).float(), fits)


def test_probability_is_that_of_what_it_is_for() -> None:
    value = torch.full((64,), 1.001)
    one, same, other = (rounded_at_random(value, rng_of(CPU, 0, step, "weight")) for step in (3, 3, 4))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_small_changes_add_up() -> None:
    """A thousand steps of a hundredth of what bfloat16 can tell apart; rounded to the nearest, none would count."""
    held = Halved(torch.ones(4096, dtype=torch.bfloat16))
    nearest = torch.ones(1, dtype=torch.bfloat16)
    for step in range(1000):
        held.write(slice(0, 4096), held.read(slice(0, 4096)) + 2.0**-7 / 100, rng_of(CPU, step))
        nearest += 2.0**-7 / 100
    assert float(nearest) == 1.0
    assert float(held.read(slice(0, 4096)).mean()) == pytest.approx(1 + 10 * 2.0**-7, rel=1e-3)


@pytest.mark.parametrize(("is_signed", "error"), [(True, 1 / 8), (False, 1 / 16)])
def test_eight_bits_keep_a_share_of_each_number(is_signed: bool, error: float) -> None:
    """Over 15 powers of two below the largest of a block; the last block is not full."""
    count = 3 * BLOCK + 17
    stream = torch.Generator().manual_seed(0)
    values = 2.0 ** (-15 * torch.rand(count, generator=stream)) * 1e-5
    values *= torch.where(torch.rand(count, generator=stream) < 0.5, -1.0, 1.0) if is_signed else 1.0
    held, whole = EightBits.zeros(count, CPU, is_signed), slice(0, count)
    assert torch.equal(held.read(whole), torch.zeros(count))
    sums = torch.zeros(count, dtype=torch.float64)
    for trial in range(400):
        held.write(whole, values, rng_of(CPU, trial))
        found = held.read(whole)
        assert bool(((found - values).abs() <= error * values.abs()).all())
        sums += found
    shares = sums / 400 / values
    assert float(shares.mean()) == pytest.approx(1, abs=2e-3) and float((shares - 1).abs().max()) < 5 * error / 2 / 20
    held.write(whole, found, rng_of(CPU, "again"))
    torch.testing.assert_close(held.read(whole), found, rtol=1e-6, atol=0)


def test_a_piece_leaves_the_others_alone_and_roots_never_vanish() -> None:
    held = EightBits.zeros(2 * BLOCK, CPU, is_signed=False)
    values = torch.full((BLOCK,), 1e-20)
    values[0] = 1.0
    held.write(slice(BLOCK, 2 * BLOCK), values, rng_of(CPU, 0))
    assert torch.equal(held.read(slice(0, BLOCK)), torch.zeros(BLOCK))
    found = held.read(slice(BLOCK, 2 * BLOCK))
    assert found[0] == 1 and bool((found[1:] > 2.0**-17).all())  # a root of zero would make a step endless
