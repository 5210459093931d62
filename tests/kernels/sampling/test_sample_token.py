"""Draws in plain torch: every row against loops over its tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from strop.kernels.sampling.counter_random import uniforms
from strop.kernels.sampling.sample_token import Draws, draw
from tests.kernels.enumerated import drawn, mixed, tied_scores


def test_every_limit_and_temperature_in_one_batch() -> None:
    scores, how, positions = tied_scores(320, 23), mixed(320), torch.arange(320)
    tokens, logprobs = draw(scores, how, positions, True)
    probabilities = uniforms(how.keys.numpy().astype(np.uint64), positions.numpy()).tolist()
    rows = zip(
        scores.tolist(), how.temperature.tolist(), how.top_k.tolist(), how.top_p.tolist(), probabilities, strict=True
    )
    for row, settings in enumerate(rows):
        token, logprob = drawn(*settings)
        assert int(tokens[row]) == token, settings
        assert float(logprobs[row]) == pytest.approx(logprob, abs=1e-6)


def test_half_of_six_equal_ones_is_three() -> None:
    """Sums of sixths end a hair beside a half; sums of ones do not."""
    count = 1000
    how = Draws(
        torch.ones(count), torch.zeros(count, dtype=torch.int64), torch.full((count,), 0.5), torch.arange(count)
    )
    tokens, logprobs = draw(torch.zeros(count, 6), how, torch.arange(count), True)
    assert set(tokens.tolist()) == {0, 1, 2}
    torch.testing.assert_close(logprobs, torch.full((count,), -math.log(3)))
