"""Rows of the engine are lined up by length, whatever their lengths are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from strop.generate.engines.cpu.decode_rows import swaps_of


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_every_order_of_four_classes_of_length_is_lined_up(count: int) -> None:
    for lengths in itertools.product([40, 100, 200, 400], repeat=count):
        lined = np.array(lengths)
        for one, other in swaps_of(lined.copy()):
            lined[[one, other]] = lined[[other, one]]
        assert lined.tolist() == sorted(lengths, reverse=True)
