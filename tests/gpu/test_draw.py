"""The draw of a decode step as kernels: against loops over tokens, and against plain torch over large vocabularies.

On a GPU, or in Triton's own interpreter: `TRITON_INTERPRET=1 pytest tests/gpu/test_draw.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch
from torch import Tensor

from strop.kernels.sampling import sample_token
from strop.kernels.sampling.sample_token import Draws
from tests.gpu.triton_device import IS_INTERPRETED, triton_device
from tests.kernels.enumerated import drawn, mixed, tied_scores

pytestmark = pytest.mark.gpu
DEVICE = triton_device()

from strop.kernels.triton import draw as triton_draw  # noqa: E402
from strop.kernels.triton import race as triton_race  # noqa: E402

Rule: TypeAlias = Callable[[Tensor, Draws, Tensor, bool], tuple[Tensor, Tensor]]
BOTH = pytest.mark.parametrize("rule", [triton_draw.draw, triton_race.race])

ROWS = 80 if IS_INTERPRETED else 320


def on_device(how: Draws) -> Draws:
    return Draws(*(each.to(DEVICE) for each in how))


def test_every_limit_and_temperature_in_one_batch() -> None:
    scores, how, positions = tied_scores(ROWS, 23), mixed(ROWS), torch.arange(ROWS).int()
    tokens, logprobs = triton_draw.draw(scores.to(DEVICE), on_device(how), positions.to(DEVICE), True)
    probabilities = sample_token.uniforms(how.keys, positions).tolist()
    rows = zip(
        scores.tolist(), how.temperature.tolist(), how.top_k.tolist(), how.top_p.tolist(), probabilities, strict=True
    )
    for row, settings in enumerate(rows):
        token, logprob = drawn(*settings)
        assert int(tokens[row]) == token, settings
        assert float(logprobs[row]) == pytest.approx(logprob, abs=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.2, 4.0])  # 0: all tie; 0.2: thousands are nearly as likely as the first
@pytest.mark.parametrize("vocabulary", [12_001] if IS_INTERPRETED else [12_001, 49_152, 151_936])
def test_large_vocabularies(vocabulary: int, spread: float) -> None:
    rows = 12 if IS_INTERPRETED else 480
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, vocabulary, generator=generator).to(DEVICE) * spread
    at = torch.arange(rows)
    how = Draws(
        temperature=torch.tensor([1.0, 0.7, 1.3])[at % 3],
        top_k=torch.tensor([0, 50, 2000, 10_000])[at % 4],
        top_p=torch.tensor([1.0, 0.95, 0.3])[at // 2 % 3],
        keys=torch.randint(-(2**62), 2**62, (rows,), generator=generator),
    )
    positions = at.int().to(DEVICE)
    tokens, logprobs = triton_draw.draw(scores, on_device(how), positions, True)
    want, expected = sample_token.draw(scores, on_device(how), positions, True)
    is_same = tokens == want
    assert is_same.float().mean() > 0.98  # a probability within rounding of a token's bound may fall to its neighbour
    torch.testing.assert_close(logprobs[is_same], expected[is_same], atol=2e-5, rtol=1e-5)


@BOTH
@pytest.mark.parametrize("is_truncated", [False, True])
def test_what_is_no_number_is_seen_in_the_logprob(rule: Rule, is_truncated: bool) -> None:
    scores = torch.zeros(2, 3000, device=DEVICE)
    scores[0, 2500] = float("nan")
    how = Draws(torch.ones(2), torch.tensor([5, 5]), torch.tensor([0.9, 0.9]), torch.arange(2))
    _, logprobs = rule(scores, on_device(how), torch.arange(2, device=DEVICE).int(), is_truncated)
    assert logprobs.isfinite().tolist() == [False, True]


@BOTH
@pytest.mark.parametrize("vocabulary", [23, 2047, 4097])
def test_a_row_without_a_number_gives_a_token_all_the_same(rule: Rule, vocabulary: int) -> None:
    """The next step looks it up before the host has seen that something is wrong."""
    how = Draws(torch.tensor([1.0, 0.0]), torch.tensor([0, 0]), torch.ones(2), torch.arange(2))
    scores = torch.full((2, vocabulary), float("nan"), device=DEVICE)
    tokens, logprobs = rule(scores, on_device(how), torch.arange(2, device=DEVICE).int(), False)
    assert bool(((tokens >= 0) & (tokens < vocabulary)).all()) and not logprobs.isfinite().any()


@BOTH
def test_logprobs_of_large_scores_are_as_exact(rule: Rule) -> None:
    scores = torch.randn(16, 23, generator=torch.Generator().manual_seed(0)) + 3000
    ones, none = torch.ones(16), torch.zeros(16, dtype=torch.int64)
    how, positions = Draws(ones, none, ones, torch.arange(16)), torch.arange(16).int()
    tokens, logprobs = rule(scores.to(DEVICE), on_device(how), positions.to(DEVICE), False)
    exact = scores.double().log_softmax(-1).gather(1, tokens.cpu().unsqueeze(1)).squeeze(1)
    assert float((logprobs.cpu() - exact).abs().max()) < 2e-6
