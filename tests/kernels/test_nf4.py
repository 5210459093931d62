"""Weights in four bits: the values by their definition, codes by hand, and what is unpacked piece by piece."""

from __future__ import annotations

import pytest
import torch

from strop.kernels.nf4 import BLOCK, VALUES, Packed4, Scratch, pack, unpack


def test_the_values_are_quantiles_of_a_normal_distribution() -> None:
    """Eight above zero and seven below it, each side evenly spaced in probability up to 0.9677083."""
    most = torch.tensor(0.9677083, dtype=torch.float64)
    above = torch.special.ndtri(torch.linspace(float(most), 0.5, 9, dtype=torch.float64))[:-1]
    below = -torch.special.ndtri(torch.linspace(float(most), 0.5, 8, dtype=torch.float64))[:-1]
    expected = torch.cat([below, torch.zeros(1, dtype=torch.float64), above]).sort().values
    torch.testing.assert_close(torch.tensor(VALUES, dtype=torch.float64), expected / expected.max(), rtol=0, atol=2e-7)


def test_codes_by_hand() -> None:
    weight = torch.zeros(2, BLOCK)
    weight[0, :4] = torch.tensor([-2.0, 2.0, 0.9, -0.2])  # shares -1, 1, 0.45, -0.1
    codes, scales = pack(weight)
    assert scales.tolist() == [2.0, 0.0]
    assert codes[:3].tolist() == [0 << 4 | 15, 12 << 4 | 6, 7 << 4 | 7]
    into = torch.full((2, BLOCK), 9.0)
    unpack(codes, scales, into)
    assert into[0, :5].tolist() == [-2.0, 2.0, 2 * VALUES[12], 2 * VALUES[6], 0.0] and not into[1].any()


def test_every_number_becomes_the_nearest_value() -> None:
    weight = torch.randn(48, 4 * BLOCK, generator=torch.Generator().manual_seed(0))
    codes, scales = pack(weight)
    found = torch.empty_like(weight)
    unpack(codes, scales, found)
    every = torch.tensor(VALUES)[:, None, None] * scales.view(-1, 1)  # [16, blocks, 1]
    nearest = (every - weight.view(-1, BLOCK)).abs().amin(0)
    torch.testing.assert_close((found.view(-1, BLOCK) - weight.view(-1, BLOCK)).abs(), nearest, rtol=0, atol=1e-6)
    rounded = torch.empty_like(weight, dtype=torch.bfloat16)
    unpack(codes, scales, rounded)
    assert torch.equal(rounded, found.to(torch.bfloat16))  # rounded once
    again, same = pack(found)
    assert torch.equal(again, codes) and torch.equal(same, scales)


def test_several_weights_use_one_place_in_turn() -> None:
    stream = torch.Generator().manual_seed(1)
    weights = [torch.randn(rows, BLOCK, generator=stream) for rows in (3, 2, 7)]
    packed, scratch = [(*pack(each), len(each)) for each in weights], Scratch(torch.float32)
    both, alone = Packed4(packed[:2], BLOCK, scratch), Packed4(packed[2:], BLOCK, scratch)
    expected = []
    for codes, scales, rows in packed:
        expected.append(torch.empty(rows, BLOCK))
        unpack(codes, scales, expected[-1])
    first = both.read()
    assert torch.equal(first, torch.cat(expected[:2]))
    second = alone.read()
    assert torch.equal(second, expected[2]) and second.data_ptr() == first.data_ptr()


def test_a_block_may_be_negative_and_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = -torch.rand(9, 2 * BLOCK, generator=torch.Generator().manual_seed(2)) - 0.1
    codes, scales = pack(weight)
    assert torch.equal(scales, -weight.view(-1, BLOCK).amin(1)) and BLOCK == 64
    whole, pieces = torch.empty_like(weight), torch.empty_like(weight)
    unpack(codes, scales, whole)
    monkeypatch.setattr("strop.kernels.nf4._PIECE", 4 * BLOCK)
    again, same = pack(weight)
    unpack(codes, scales, pieces)
    assert torch.equal(again, codes) and torch.equal(same, scales) and torch.equal(whole, pieces)
