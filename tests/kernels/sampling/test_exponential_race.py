"""Draws by a race: every row against loops over its tokens, frequencies against probabilities, pairs against theory."""

from __future__ import annotations

import math

import pytest
import torch

from strop.kernels.sampling import exponential_race as race_file
from strop.kernels.sampling.exponential_race import race, times
from strop.kernels.sampling.sample_token import Draws, draw
from tests.kernels.enumerated import kept, mixed, tied_scores

_64, _32 = 2**64 - 1, 2**32 - 1


def mixed_64(bits: int) -> int:
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _64
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _64
    return bits ^ (bits >> 31)


def mixed_32(bits: int) -> int:
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & _32
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & _32
    return bits ^ (bits >> 16)


def time_of(key: int, position: int, token: int) -> float:
    golden = 0x9E3779B97F4A7C15
    stream = mixed_64((mixed_64((key + golden) & _64) + (position + 1) * golden) & _64)
    bits = mixed_32(mixed_32((token + (stream & _32)) & _32) ^ (stream >> 32))
    return -math.log1p(-(bits + 0.5) / 2**32)


def on_all(count: int, temperature: float = 1.0) -> Draws:
    return Draws(
        torch.full((count,), temperature), torch.zeros(count, dtype=torch.int64), torch.ones(count), torch.arange(count)
    )


def test_every_limit_and_temperature_in_one_batch() -> None:
    scores, how, positions = tied_scores(320, 23), mixed(320), torch.arange(320)
    tokens, logprobs = race(scores, how, positions, True)
    for row in range(320):
        heat, key = float(how.temperature[row]), int(how.keys[row])
        if heat == 0:
            assert int(tokens[row]) == int(scores[row].argmax()) and float(logprobs[row]) == 0
            continue
        probabilities = kept(scores[row].tolist(), heat, int(how.top_k[row]), float(how.top_p[row]))
        first = min(probabilities, key=lambda token: time_of(key, row, token) / probabilities[token])
        assert int(tokens[row]) == first
        assert math.isclose(float(logprobs[row]), math.log(probabilities[first]), abs_tol=1e-6)


def test_as_often_as_their_probabilities_say() -> None:
    count, scores = 40_000, torch.tensor([2.0, 0.0, -3.0, 1.5, 1.9, -8.0])
    for position in (0, 7):
        tokens, _ = race(scores.expand(count, -1), on_all(count, 0.8), torch.full((count,), position), False)
        probabilities = (scores / 0.8).softmax(0)
        found = torch.bincount(tokens, minlength=6) / count
        spread = (probabilities * (1 - probabilities) / count).sqrt()
        assert bool(((found - probabilities).abs() < 4.5 * spread + 1e-9).all()), (found, probabilities)


def test_times_are_exponential_and_nobody_knows_them_from_others() -> None:
    found = times(torch.arange(400), torch.arange(400) % 7, 500)
    assert abs(float(found.mean()) - 1) < 0.01 and abs(float(found.var()) - 1) < 0.03
    shares = found.neg().exp()  # even between 0 and 1
    for one, other in ((shares[:, :-1], shares[:, 1:]), (shares[:-1], shares[1:]), (shares[:-7], shares[7:])):
        assert abs(float(torch.corrcoef(torch.stack((one.flatten(), other.flatten())))[0, 1])) < 0.01


def test_the_shortest_time_is_above_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_file, "_stirred", torch.zeros_like)
    assert float(times(torch.tensor([5]), torch.tensor([0]), 1)) == pytest.approx(2.0**-33, rel=1e-9)


def test_two_that_are_alike_mostly_draw_the_same() -> None:
    """As often as the theory of races says (the sum over i of 1 / sum over j of max(p_j / p_i, q_j / q_i))."""
    torch.manual_seed(0)
    count = 20_000
    one = torch.randn(300)
    other = one + 0.4 * torch.randn(300)
    ways = {}
    for name, rule in (("race", race), ("probability", draw)):
        drawn = [rule(each.expand(count, -1), on_all(count), torch.zeros(count), False)[0] for each in (one, other)]
        ways[name] = float((drawn[0] == drawn[1]).float().mean())
    p, q = one.double().softmax(0), other.double().softmax(0)
    agree = float((1 / torch.maximum(p / p[:, None], q / q[:, None]).sum(1)).sum())
    assert abs(ways["race"] - agree) < 0.02 and agree > 0.6
    assert ways["probability"] < 0.4 * agree, ways


def test_what_is_no_number_is_seen_in_the_logprob() -> None:
    scores = torch.zeros(3, 6)
    scores[:2, 4] = float("nan")
    how = Draws(torch.tensor([1.0, 0.0, 0.0]), torch.zeros(3, dtype=torch.int64), torch.ones(3), torch.arange(3))
    for is_truncated in (False, True):
        _, logprobs = race(scores, how, torch.arange(3), is_truncated)
        assert logprobs.isfinite().tolist() == [False, False, True]
