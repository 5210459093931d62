"""Truncated, clamped and masked token weights, on the ratios (0.4, 1, 3)."""

from __future__ import annotations

from math import log

import pytest
import torch

from strop.roles import Correction
from strop.training.corrections.importance_weights import Clamped, Masked, Truncated
from strop.training.requirements import Logprobs
from tests.building import lay_out, make_batch, say, written


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        (Truncated(cap=2.0), [0.4, 1.0, 2.0]),
        (Clamped(low=0.5, high=2.0), [0.5, 1.0, 2.0]),
        (Masked(low=0.5, high=2.0), [0.0, 1.0, 0.0]),
        (Masked(low=0.0, high=5.0), [0.4, 1.0, 3.0]),
    ],
    ids=repr,
)
def test_hand_worked_weights(correction: Correction, expected: list[float]) -> None:
    batch = make_batch([[log(0.1)] * 3])
    assert written(batch, correction(say([[log(0.04), log(0.1), log(0.3)]]).logprobs, batch)) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [Truncated, Clamped, Masked])
def test_a_frozen_target_ignores_the_current_policy(kind: type[Truncated]) -> None:
    batch = make_batch([[log(0.1)] * 2])
    batch.fill("old", lay_out([[log(0.15), log(0.1)]], float("nan")))
    correction = kind(target="old")
    assert correction.needs == {Logprobs("old")} and kind().needs == frozenset()
    assert written(batch, correction(say([[-7.0, -8.0]]).logprobs, batch)) == pytest.approx([1.5, 1.0])


def test_a_masked_token_keeps_its_place_in_the_denominator() -> None:
    batch = make_batch([[log(0.1)] * 4])  # share 1/4 each
    weights = Masked()(say([[log(0.1), log(0.1), log(0.9), log(0.9)]]).logprobs, batch)
    assert float((batch.share * weights)[batch.trainable].sum()) == pytest.approx(0.5)
    torch.testing.assert_close(batch.share[batch.trainable], torch.full((4,), 0.25, dtype=torch.float64))
