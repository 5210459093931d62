"""The rectified policy by hand, and against a bisection for the one factor that makes probabilities add up."""

from __future__ import annotations

import pytest
import torch

from strop.errors import ConfigurationError
from strop.recipes.value.dead_end import Capped, capped


def bisected(probabilities: list[float], caps: list[float]) -> list[float]:
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(min(middle * p, cap) for p, cap in zip(probabilities, caps, strict=True))
        low, high = (middle, high) if total < 1 else (low, middle)
    return [min(high * p, cap) for p, cap in zip(probabilities, caps, strict=True)]


def test_the_papers_two_tokens() -> None:
    """pi = (.7, .3), Q = (-.8, 0): the bound is (.2, 1); renormalising once (.4, .6) or twice (.25, .75) misses it."""
    found = Capped(0.0)(torch.tensor([0.7, 0.3]).log(), torch.tensor([0, 1]), torch.tensor([-0.8, 0.0])).exp()
    assert found.tolist() == pytest.approx([0.2, 0.8])
    same = Capped(0.0)(torch.tensor([0.7, 0.3]).log(), torch.tensor([0, 1]), torch.zeros(2)).exp()
    assert same.tolist() == pytest.approx([0.7, 0.3])
    low = Capped(0.1)(torch.tensor([0.5, 0.3, 0.2]).log(), torch.tensor([0]), torch.tensor([-0.5])).exp()
    assert low.tolist() == pytest.approx([0.4, 0.36, 0.24]), "1 - 0.5 - 0.1, the others in proportion"


def test_one_factor_makes_them_add_up() -> None:
    random = torch.Generator().manual_seed(0)
    for _ in range(200):
        probabilities = torch.rand(7, generator=random, dtype=torch.float64).pow(3)
        probabilities = probabilities / probabilities.sum()
        caps = torch.rand(7, generator=random, dtype=torch.float64).clamp(1e-7, 1)
        if float(caps.sum()) > 1:
            assert capped(probabilities, caps).tolist() == pytest.approx(
                bisected(probabilities.tolist(), caps.tolist()), abs=1e-9
            )


def test_where_no_token_is_allowed_enough_caps_share_what_there_is() -> None:
    assert capped(torch.tensor([0.5, 0.5]), torch.tensor([0.3, 0.1])).tolist() == pytest.approx([0.75, 0.25])
    told = Capped(0.0)(torch.zeros(3), torch.tensor([0, 1, 2]), torch.tensor([-5.0, 3.0, -1.0])).exp()
    assert told.tolist() == pytest.approx([1e-7, 1, 1e-7], abs=1e-6), "caps lie between 1e-7 and 1"
    with pytest.raises(ConfigurationError, match="got 1"):
        Capped(1.0)
