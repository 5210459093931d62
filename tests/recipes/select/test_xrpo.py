"""XRPO's planner by hand."""

from __future__ import annotations

import json
from math import inf, log, sqrt

import pytest

from strop.errors import ConfigurationError
from strop.recipes.select.xrpo import UncertaintyReduction
from strop.types import Group, Origin
from tests.building import make_group


def group_of(rewards: list[float], version: int = 0) -> Group:
    group = make_group(rewards)
    group.version = version
    return group


def test_what_one_more_rollout_narrows() -> None:
    """With s = 0.5 the half width falls by 3.25, .175, .0337 and .0094 at n = 2, 4, 8 and 16."""
    budget = UncertaintyReduction(explore=0.0)
    for count, wanted in [(2, 3.25), (4, 0.175), (8, 0.0337), (16, 0.0094)]:
        half = count // 2
        scale = 0.5 / sqrt(half * 0.25 * 2 / (count - 1))  # to a spread of 0.5
        found = budget.priority(group_of([1.0] * half + [0.0] * half)) * scale
        assert found == pytest.approx(wanted, rel=0.02)  # quantiles have three digits
    assert budget.priority(group_of([1.0] * 4)) == 0.0, "no spread, nothing to narrow"


def test_the_bonus_for_few_rollouts() -> None:
    budget = UncertaintyReduction(explore=2.0, tasks=8)
    assert budget.priority(group_of([0.0] * 4)) == pytest.approx(2 * sqrt(log(33) / 4))
    assert budget.priority(group_of([0.0] * 9)) == pytest.approx(2 * sqrt(log(73) / 9))


def test_rollouts_that_read_examples_are_spent_and_are_no_evidence() -> None:
    """Or a task at which all failed would be worth the same however many waves it had."""
    budget = UncertaintyReduction(explore=2.0, tasks=8)
    lost = group_of([0.0] * 8)
    for rollout in lost.rollouts[4:]:
        rollout.origin = Origin.GUIDED
    lost.rollouts[7].reward = 1.0
    assert budget.priority(lost) == pytest.approx(2 * sqrt(log(65) / 8))


def test_only_own_scored_rollouts_count() -> None:
    budget = UncertaintyReduction(explore=0.0)
    group = make_group([1.0, 0.0, 1.0, 0.0, 1.0], failed=[0], pruned=[1])
    group.rollouts[4].origin = Origin.GUIDED
    assert budget.priority(group) == budget.priority(group_of([1.0, 0.0]))
    assert budget.priority(make_group([1.0, 0.0], failed=[0])) == -inf and budget.rollouts(make_group([1.0])) == 0


def test_waves_are_bought_at_the_price_of_the_groups_version() -> None:
    budget = UncertaintyReduction(4, 4, 8.0, 14, explore=0.0)
    mixed, even = [1.0, 0.0, 1.0, 0.0], [1.0] * 4
    assert budget.size == 4 == budget.rollouts(group_of([])), "the first wave is for all"
    # s = sqrt(1/3): (3.182 / 2 - 2.776 / sqrt 5) * s = 0.20 against a first price of 0.1
    assert budget.rollouts(group_of(mixed)) == 4 and budget.rollouts(group_of(even)) == 0
    assert budget.rollouts(group_of(mixed * 3)) == 0 and budget.rollouts(group_of([1.0] * 14)) == 0
    for _ in range(40):
        budget.observe(group_of([0.0] * 16))  # twice the mean each: the price rises to 0.1 * exp(2)
    assert budget.rollouts(group_of(mixed)) == 4, "as it was when its version began"
    assert budget.rollouts(group_of(mixed, version=1)) == 0
    again = UncertaintyReduction(4, 4, 8.0, 14, explore=0.0)
    again.restore(json.loads(json.dumps(budget.state())))
    assert again.state() == budget.state() and again.rollouts(group_of(mixed, version=1)) == 0
    assert UncertaintyReduction(4, 4, 8.0, 9, 5.0).rollouts(group_of([0.0] * 6)) == 3, "no more than the most"


def test_metrics_of_added_rollouts_and_nonsense_is_refused() -> None:
    metrics = UncertaintyReduction(4).learn([make_group([0.0] * 8), make_group([0.0] * 3)])
    assert metrics == {"price": pytest.approx(0.1), "rollouts_added": 2.0}
    for wrong in ({"first": 1}, {"mean": 4.0}, {"most": 8}, {"chunk": 0}, {"explore": -1.0}, {"tasks": 0}):
        with pytest.raises(ConfigurationError, match="UncertaintyReduction needs"):
            UncertaintyReduction(**wrong)  # type: ignore[arg-type]
