"""Brief, BestSibling and Coin: small rewards that experiments measure with."""

from __future__ import annotations

import pytest

from strop.errors import ConfigurationError
from strop.filter.rewards.controls import BestSibling, Coin
from strop.recipes.objective.gdpo import Brief
from tests.building import make_group


def test_brief_counts_written_tokens() -> None:
    assert Brief(3)(make_group([0, 0, 0], lengths=[2, 3, 4])) == [1.0, 1.0, 0.0]
    with pytest.raises(ConfigurationError, match=">= 1 token, got 0"):
        Brief(0)


def test_best_sibling_pays_all_alike_and_looks_at_no_failed_rollout() -> None:
    group = make_group([0, 0, 0], turn_rewards=[(0.0,), (0.25, 0.5), (9.0,)], failed=[2])
    assert BestSibling()(group) == [0.75] * 3


def test_a_coin_is_fair_and_the_same_again() -> None:
    group = make_group([0.0] * 2000)
    thrown = Coin(0.25)(group)
    assert thrown == Coin(0.25)(group) and 0.21 < sum(thrown) / 2000 < 0.29
    with pytest.raises(ConfigurationError, match="from 0 to 1, got 2"):
        Coin(2.0)
