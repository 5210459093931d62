"""Draws by a race as kernels, on a GPU or in Triton's interpreter, beside plain torch."""

from __future__ import annotations

import pytest
import torch

from strop.kernels.sampling.exponential_race import race
from strop.kernels.sampling.sample_token import Draws
from tests.gpu.triton_device import IS_INTERPRETED, triton_device
from tests.kernels.enumerated import mixed, tied_scores

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import race as triton_race  # noqa: E402


def on_device(how: Draws) -> Draws:
    return Draws(*(each.to(DEVICE) for each in how))


def test_every_limit_and_temperature_in_one_batch() -> None:
    scores, how, positions = tied_scores(80, 23), mixed(80), torch.arange(80).int()
    want, expected = race(scores, how, positions, True)
    tokens, logprobs = triton_race.race(scores.to(DEVICE), on_device(how), positions.to(DEVICE), True)
    assert torch.equal(tokens.cpu(), want)
    torch.testing.assert_close(logprobs.cpu(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("is_truncated", [False, True])
@pytest.mark.parametrize("vocabulary", [107, 12_001] if IS_INTERPRETED else [107, 12_001, 49_152, 151_936])
def test_large_vocabularies(vocabulary: int, is_truncated: bool) -> None:
    rows = 12 if IS_INTERPRETED else 480
    generator = torch.Generator().manual_seed(0)
    scores, at = torch.randn(rows, vocabulary, generator=generator).to(DEVICE) * 3, torch.arange(rows)
    how = Draws(
        temperature=torch.tensor([1.0, 0.7, 1.3])[at % 3],
        top_k=torch.tensor([0, 50, 2000, 10_000])[at % 4] * is_truncated,
        top_p=torch.tensor([1.0, 0.95, 0.3])[at // 2 % 3] if is_truncated else torch.ones(rows),
        keys=torch.randint(-(2**62), 2**62, (rows,), generator=generator),
    )
    positions = at.int().to(DEVICE)
    tokens, logprobs = triton_race.race(scores, on_device(how), positions, is_truncated)
    want, expected = race(scores, on_device(how), positions, is_truncated)
    assert (tokens == want).float().mean() > 0.995  # two may be first within what float32 rounds
    is_same = tokens == want
    torch.testing.assert_close(logprobs[is_same], expected[is_same], atol=2e-5, rtol=1e-5)


def test_times_of_every_size() -> None:
    """What is short is as exact as what is long: the first of many has a short time."""
    count = 3000
    how = Draws(torch.ones(1), torch.zeros(1, dtype=torch.int64), torch.ones(1), torch.tensor([5]))
    for shift in (-18.0, 0.0, 18.0):  # the first token wins by a very short time, by any, by a very long one
        scores = torch.zeros(1, count)
        scores[0, 0] = shift
        want, expected = race(scores, how, torch.zeros(1), False)
        tokens, logprobs = triton_race.race(
            scores.to(DEVICE), on_device(how), torch.zeros(1, dtype=torch.int32, device=DEVICE), False
        )
        assert tokens.tolist() == want.tolist() and float(logprobs[0]) == pytest.approx(float(expected[0]), abs=1e-4)
