"""ThinkTuning's shaping: the card's numbers, the edges of its divisor, and the rare tokens that it does not push."""

from __future__ import annotations

from math import log

import pytest

from strop.errors import ConfigurationError
from strop.recipes.guide.thinktuning import AdvantageAware
from strop.training.objective import Objective
from tests.building import lay_out, make_batch, say, written


def gradient(policy: float, advantage: float, old: float | None = None, **fields: float) -> float:
    """Of the loss, by log p, for a token that nobody sampled and that had probability `old` before the step."""
    batch, output = make_batch([[0.0]], advantages=[advantage], share=[[1.0]]), say([[log(policy)]])
    batch.versions = batch.versions.fill_(-1)
    batch.fill("proximal", lay_out([[log(old or policy)]]))
    Objective((AdvantageAware(**fields),))(output, batch)[0].backward()
    return written(batch, output.logprobs.grad)[0]


def test_the_weight_leans_with_the_advantage() -> None:
    """g(4) = 0.001, g(-4) = -0.001, g(2) = 0.0005, and no more beyond 4."""
    assert gradient(0.5, 4.0) == pytest.approx(-4 * 0.5 / 0.501)
    assert gradient(0.5, -4.0) == pytest.approx(4 * 0.5 / 0.499)
    assert gradient(0.5, 2.0) == pytest.approx(-2 * 0.5 / 0.5005)
    assert gradient(0.5, 8.0) == pytest.approx(-8 * 0.5 / 0.501)


def test_without_lean_it_is_the_plain_policy_gradient() -> None:
    assert gradient(0.5, 2.0, lean=0.0) == -2.0 and gradient(0.5, 0.0) == 0.0


def test_the_divisor_stays_within_0_and_1() -> None:
    assert gradient(0.9995, 4.0) == pytest.approx(-4 * 0.9995 / 0.9999), "1.0005 would be above 1"
    assert gradient(0.0005, -4.0, rare=0.0) == pytest.approx(4 * 0.0005 / 1.0001), "-0.0005 would be below 0"


def test_rare_tokens_are_pushed_down_by_a_clipped_ratio() -> None:
    assert gradient(0.009, -1.0) == pytest.approx(1.0), "ratio 1"
    assert gradient(0.006, -1.0, old=0.009) == 0.0, "it fell by a third already"
    assert gradient(0.009, 1.0) == pytest.approx(-0.009 / 0.00925), "whoever is pushed up is not rare"
    batch, output = make_batch([[log(0.009), log(0.5)]], advantages=[-1.0]), say([[log(0.009), log(0.5)]])
    batch.fill("proximal", output.logprobs.detach())
    metrics = AdvantageAware()(output, batch)[1]
    assert metrics["rare_share"] == pytest.approx(0.5)
    assert metrics["leaning"] == pytest.approx((0.009 / 0.00875 + 0.5 / 0.49975) / 2)


def test_refuses_nonsense() -> None:
    with pytest.raises(ConfigurationError, match="AdvantageAware needs lean >= 0, got -1"):
        AdvantageAware(lean=-1.0)
