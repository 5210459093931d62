"""Draws: truncation by hand, edge cases of the inverse distribution, and frequencies."""

import math

import numpy as np
import torch

from strop.generate.engines.sampling import distribution, draw

PROBABILITIES = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
LOGITS = torch.tensor(np.log(PROBABILITIES), dtype=torch.float32)


def of(temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> np.ndarray:
    """Probabilities of one row."""
    settings = np.float32([temperature]), np.int64([top_k]), np.float32([top_p])
    return distribution(LOGITS.unsqueeze(0), *settings)[0].exp().numpy()


def test_no_truncation_is_the_softmax() -> None:
    np.testing.assert_allclose(of(), PROBABILITIES, rtol=1e-6)


def test_temperature_sharpens() -> None:
    squared = PROBABILITIES**2
    np.testing.assert_allclose(of(temperature=0.5), squared / squared.sum(), rtol=1e-5)


def test_top_k_keeps_the_likeliest_and_renormalises() -> None:
    np.testing.assert_allclose(of(top_k=2), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)


def test_top_p_keeps_the_fewest_that_reach_the_mass() -> None:
    # 0.4 + 0.25 = 0.65 < 0.7, so the third (0.2) is needed
    np.testing.assert_allclose(of(top_p=0.7), [0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85], rtol=1e-6)
    np.testing.assert_allclose(of(top_p=0.3), [0, 1, 0, 0, 0])
    np.testing.assert_allclose(of(top_p=1e-6), [0, 1, 0, 0, 0])


def test_top_p_is_taken_of_what_top_k_left() -> None:
    # of 0.4, 0.25 and 0.2 the first two hold 0.65 / 0.85 = 0.765
    np.testing.assert_allclose(of(top_k=3, top_p=0.75), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], rtol=1e-6)
    np.testing.assert_allclose(of(top_k=3, top_p=0.77), [0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85], rtol=1e-6)


def test_a_limit_beyond_the_vocabulary_changes_nothing() -> None:
    np.testing.assert_allclose(of(top_k=99), PROBABILITIES, rtol=1e-6)


def test_ties_go_to_the_lower_id() -> None:
    scores = distribution(torch.zeros(1, 4), np.float32([1]), np.int64([2]), np.float32([1]))
    np.testing.assert_allclose(scores.exp().numpy(), [[0.5, 0.5, 0, 0]])


def test_temperature_0_is_a_point_mass_with_logprob_0() -> None:
    tokens, logprobs = draw(LOGITS.expand(3, -1), np.zeros(3, np.float32), np.zeros(3, np.int64), ones(3), spread(3))
    assert tokens.tolist() == [1, 1, 1]
    assert logprobs.tolist() == [0.0, 0.0, 0.0]


def ones(count: int) -> np.ndarray:
    return np.ones(count, np.float32)


def spread(count: int) -> np.ndarray:
    """Numbers that lie evenly in [0, 1), so that frequencies are exact to one count."""
    return (np.arange(count) + 0.5) / count


def test_rows_of_one_batch_have_their_own_settings() -> None:
    temperature, top_k, top_p = np.float32([1, 0.5, 0, 1, 1]), np.int64([0, 0, 0, 2, 0]), np.float32([1, 1, 1, 1, 0.7])
    together = distribution(LOGITS.expand(5, -1), temperature, top_k, top_p).exp().numpy()
    for row in range(5):
        alone = of(float(temperature[row]), int(top_k[row]), float(top_p[row])) if temperature[row] else [0, 1, 0, 0, 0]
        np.testing.assert_allclose(together[row], alone, rtol=1e-6)


def test_frequencies_are_the_probabilities_and_logprobs_belong_to_them() -> None:
    count = 10_000
    for top_k, top_p in ((0, 1.0), (3, 1.0), (0, 0.7)):
        want = of(top_k=top_k, top_p=top_p)
        settings = ones(count), np.full(count, top_k), np.full(count, top_p, np.float32)
        tokens, logprobs = draw(LOGITS.expand(count, -1), *settings, spread(count))
        np.testing.assert_allclose(np.bincount(tokens, minlength=5) / count, want, atol=2 / count)
        np.testing.assert_allclose(np.exp(logprobs), want[tokens], rtol=1e-5)


def test_a_token_of_probability_0_is_never_drawn() -> None:
    impossible = -math.inf
    logits = torch.tensor([[impossible, 0.0, impossible, 0.0, impossible]])
    almost_one = np.nextafter(1.0, 0.0)
    for uniform, want in ((0.0, 1), (0.4999, 1), (0.5001, 3), (almost_one, 3)):
        tokens, logprobs = draw(logits, ones(1), np.zeros(1, np.int64), ones(1), np.array([uniform]))
        assert tokens.tolist() == [want]
        np.testing.assert_allclose(logprobs, math.log(0.5), rtol=1e-6)


def test_the_last_uniform_finds_a_possible_token_in_a_large_vocabulary() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 50_000, generator=generator) * 4
    logits[:, -100:] = -math.inf
    tokens, logprobs = draw(logits, ones(8), np.zeros(8, np.int64), ones(8), np.full(8, np.nextafter(1.0, 0.0)))
    assert (tokens < 49_900).all()
    assert np.isfinite(logprobs).all()
