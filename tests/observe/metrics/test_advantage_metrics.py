"""Figures of credit, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from strop.observe.metrics.advantage_metrics import credit_figures
from strop.types import Group
from tests.building import make_group


def credited(rewards: list[float], credit: list[list[float]], number: int = 0) -> Group:
    group = make_group(rewards, [len(each) for each in credit], number=number)
    for attempt, own in zip(group.trajectories, credit, strict=True):
        attempt.advantages = np.array(own, dtype=np.float32)
    return group


def test_how_much_credit_there_is() -> None:
    """|A| over 3 tokens: (1 + 1 + 4) / 3 = 2; attempts' means 1 and -4; no spread along any attempt."""
    figures = credit_figures([credited([1.0, 0.0], [[1.0, 1.0], [-4.0]])])
    assert figures["credit"] == 2.0 and figures["credit_mean"] == -1.5 and figures["credit_within"] == 0.0


def test_credit_that_changes_along_an_attempt() -> None:
    """Spreads 2 (of 1 and 5) and 0."""
    assert credit_figures([credited([1.0, 0.0], [[1.0, 5.0], [3.0]])])["credit_within"] == 1.0


def test_a_line_over_rewards_has_nothing_beside_it_whatever_its_slope_in_each_group() -> None:
    groups = [credited([0.0, 1.0, 3.0], [[-1.0], [1.0], [5.0]]), credited([0.0, 1.0], [[7.0], [-7.0]], number=1)]
    assert credit_figures(groups)["credit_beside_rewards"] == pytest.approx(0.0, abs=1e-12)


def test_what_rewards_do_not_say() -> None:
    """Rewards 0 0 1 1 and credit -3 -1 1 3: of the variance 20 the line through -2 and 2 explains 16."""
    group = credited([0.0, 0.0, 1.0, 1.0], [[-3.0], [-1.0], [1.0], [3.0]])
    assert credit_figures([group])["credit_beside_rewards"] == pytest.approx(0.2)
    equal = credited([1.0, 1.0], [[1.0], [-1.0]], number=1)  # equal rewards explain nothing: 2 more of 22
    assert credit_figures([group, equal])["credit_beside_rewards"] == pytest.approx(6 / 22)


def test_families_are_compared_within_themselves() -> None:
    """One line through each family, none through both: rewards 0 1 0 1, credit 0 1 10 12."""
    group = credited([0.0, 1.0, 0.0, 1.0], [[0.0], [1.0], [10.0], [12.0]])
    assert credit_figures([group])["credit_beside_rewards"] > 0.5
    for attempt in group.trajectories[2:]:
        attempt.family = "hinted"
    assert credit_figures([group])["credit_beside_rewards"] == pytest.approx(0.0, abs=1e-12)


def test_attempts_without_credit_or_tokens_do_not_count() -> None:
    group = credited([1.0, 0.0, 0.5], [[2.0], [], [1.0]])
    group.trajectories[2].advantages = None
    assert credit_figures([group])["credit"] == 2.0
    assert credit_figures([make_group([1.0, 0.0])]) == {}
    assert credit_figures([credited([1.0, 0.0], [[0.0], [0.0]])])["credit_beside_rewards"] == 0.0
