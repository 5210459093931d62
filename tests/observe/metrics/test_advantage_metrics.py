"""Metrics of advantage, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from strop.observe.metrics.advantage_metrics import advantage_metrics
from strop.types import Group
from tests.building import make_group


def with_advantages(rewards: list[float], advantage: list[list[float]], number: int = 0) -> Group:
    group = make_group(rewards, [len(each) for each in advantage], number=number)
    for rollout, own in zip(group.rollouts, advantage, strict=True):
        rollout.advantages = np.array(own, dtype=np.float32)
    return group


def test_how_much_credit_there_is() -> None:
    """|A| over 3 tokens: (1 + 1 + 4) / 3 = 2; rollouts' means 1 and -4; no spread along any rollout."""
    metrics = advantage_metrics([with_advantages([1.0, 0.0], [[1.0, 1.0], [-4.0]])])
    assert metrics["advantage"] == 2.0 and metrics["advantage_mean"] == -1.5 and metrics["advantage_within"] == 0.0


def test_credit_that_changes_along_an_rollout() -> None:
    """Spreads 2 (of 1 and 5) and 0."""
    assert advantage_metrics([with_advantages([1.0, 0.0], [[1.0, 5.0], [3.0]])])["advantage_within"] == 1.0


def test_a_line_over_rewards_has_nothing_beside_it_whatever_its_slope_in_each_group() -> None:
    groups = [
        with_advantages([0.0, 1.0, 3.0], [[-1.0], [1.0], [5.0]]),
        with_advantages([0.0, 1.0], [[7.0], [-7.0]], number=1),
    ]
    assert advantage_metrics(groups)["advantage_beside_rewards"] == pytest.approx(0.0, abs=1e-12)


def test_what_rewards_do_not_say() -> None:
    """Rewards 0 0 1 1 and advantage -3 -1 1 3: of the variance 20 the line through -2 and 2 explains 16."""
    group = with_advantages([0.0, 0.0, 1.0, 1.0], [[-3.0], [-1.0], [1.0], [3.0]])
    assert advantage_metrics([group])["advantage_beside_rewards"] == pytest.approx(0.2)
    equal = with_advantages([1.0, 1.0], [[1.0], [-1.0]], number=1)  # equal rewards explain nothing: 2 more of 22
    assert advantage_metrics([group, equal])["advantage_beside_rewards"] == pytest.approx(6 / 22)


def test_comparison_groups_are_compared_within_themselves() -> None:
    """One line through each comparison group, none through both: rewards 0 1 0 1, advantage 0 1 10 12."""
    group = with_advantages([0.0, 1.0, 0.0, 1.0], [[0.0], [1.0], [10.0], [12.0]])
    assert advantage_metrics([group])["advantage_beside_rewards"] > 0.5
    for rollout in group.rollouts[2:]:
        rollout.comparison_group = "hinted"
    assert advantage_metrics([group])["advantage_beside_rewards"] == pytest.approx(0.0, abs=1e-12)


def test_rollouts_without_credit_or_tokens_do_not_count() -> None:
    group = with_advantages([1.0, 0.0, 0.5], [[2.0], [], [1.0]])
    group.rollouts[2].advantages = None
    assert advantage_metrics([group])["advantage"] == 2.0
    assert advantage_metrics([make_group([1.0, 0.0])]) == {}
    assert advantage_metrics([with_advantages([1.0, 0.0], [[0.0], [0.0]])])["advantage_beside_rewards"] == 0.0
