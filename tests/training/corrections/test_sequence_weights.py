"""Weights of whole rollouts, on the ratios (0.4, 1, 3): product 1.2, geometric mean 1.2^(1/3) = 1.06266."""

from __future__ import annotations

import itertools
from math import log

import pytest

from strop.roles import Correction
from strop.training.corrections.geometric import Geometric
from strop.training.corrections.importance_weights import SequenceMasked, SequenceTruncated, Truncated, Veto
from strop.training.requirements import Logprobs
from tests.building import make_batch, say, written


def weights(correction: Correction, *ratios: list[float]) -> list[float]:
    batch = make_batch([[log(0.01)] * len(each) for each in ratios])
    policy = say([[log(0.01 * ratio) for ratio in each] for each in ratios])
    return written(batch, correction(policy.logprobs, batch))


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        (SequenceTruncated(cap=8.0), [1.2, 1.2, 1.2, 8.0, 8.0]),
        (SequenceTruncated(cap=1.1), [1.1, 1.1, 1.1, 1.1, 1.1]),
        (SequenceMasked(cap=8.0), [1.2, 1.2, 1.2, 0.0, 0.0]),
        (SequenceMasked(cap=9.1), [1.2, 1.2, 1.2, 9.0, 9.0]),
        (Geometric(low=1.06, high=1.063), [1.0, 1.0, 1.0, 0.0, 0.0]),
        (Geometric(low=1.0626, high=3.1, inner=Truncated(2.0)), [0.4, 1.0, 2.0, 2.0, 2.0]),
        (Geometric(low=1.0627, high=3.1), [0.0, 0.0, 0.0, 1.0, 1.0]),
    ],
    ids=repr,
)
def test_hand_worked_weights(correction: Correction, expected: list[float]) -> None:
    assert weights(correction, [0.4, 1.0, 3.0], [3.0, 3.0]) == pytest.approx(expected)


def test_the_mean_ratio_of_a_single_token_is_its_own() -> None:
    assert weights(Geometric(low=2.9, high=3.1), [3.0], [9.0]) == [1.0, 0.0]


def test_one_ruled_out_token_vetoes_its_whole_rollout_and_no_other() -> None:
    veto = Veto(Truncated(2.0), floor=1e-4)
    assert weights(veto, [1.0, 0.5e-4, 3.0], [2e-4, 3.0]) == pytest.approx([0.0, 0.0, 0.0, 2e-4, 2.0])
    assert Veto(Truncated(target="old"), target="old").needs == {Logprobs("old")}


@pytest.mark.parametrize("target", ["current", "old"])
def test_what_both_parts_of_a_correction_need_is_asked_for(target: str) -> None:
    inner = Truncated(target="averaged")
    expected = {Logprobs("averaged")} | ({Logprobs("old")} if target == "old" else set())
    assert Veto(inner, target=target).needs == expected == Geometric(target=target, inner=inner).needs
    assert Geometric(target=target).needs == expected - {Logprobs("averaged")}


def test_a_product_that_overflows_is_capped_or_masked() -> None:
    long = [[90.0] * 300]
    assert weights(SequenceTruncated(), *long) == pytest.approx([8.0] * 300)
    assert weights(SequenceMasked(), *long) == [0.0] * 300


def test_the_whole_product_is_unbiased_and_the_last_token_alone_is_not() -> None:
    # Two steps, tokens a and b, mu 1/2 each; pi(a) = .8, pi(a|a) = .8, pi(a|b) = .2; f = [second token is a].
    def policy(first: str, second: str) -> list[float]:
        last = 0.8 if first == "a" else 0.2
        return [0.8 if first == "a" else 0.2, last if second == "a" else 1 - last]

    pairs = list(itertools.product("ab", repeat=2))
    batch = make_batch([[log(0.5)] * 2 for _ in pairs])
    logprobs = say([[log(p) for p in policy(*pair)] for pair in pairs]).logprobs
    whole = written(batch, SequenceTruncated(cap=100.0)(logprobs, batch))[1::2]
    token = written(batch, Truncated(cap=100.0)(logprobs, batch))[1::2]
    values = [float(second == "a") for _, second in pairs]
    assert sum(0.25 * w * f for w, f in zip(whole, values, strict=True)) == pytest.approx(0.68, abs=1e-14)
    assert sum(0.25 * w * f for w, f in zip(token, values, strict=True)) == pytest.approx(0.50, abs=1e-14)
