"""DART's rollout budget: by hand, what counts as success, and its state."""

from __future__ import annotations

import json

import pytest

from strop.errors import ConfigurationError
from strop.recipes.system.dart import BySuccess
from strop.types import SUCCESS, Origin, Outcome
from tests.building import TASK, make_group


def observed(right: int, wrong: int, size: int = 20) -> BySuccess:
    budget = BySuccess(8)
    budget._latest[TASK.id] = [True] * right + [False] * wrong
    assert right + wrong <= size
    return budget


@pytest.mark.parametrize(
    ("right", "wrong", "expected"), [(3, 2, 8), (6, 2, 5), (9, 1, 3), (8, 0, 2), (1, 7, 8), (0, 0, 8)]
)
def test_the_papers_numbers(right: int, wrong: int, expected: int) -> None:
    """9 / p - 7 at p = 0.6, 0.75, 0.9 and 1."""
    assert observed(right, wrong).rollouts(make_group([])) == expected


def test_only_own_rollouts_that_count_are_counted() -> None:
    budget = BySuccess(4)
    group = make_group([1.0, 1.0, 0.0, 1.0])
    group.rollouts[2].outcome = Outcome.FAILED
    group.rollouts[3].origin = Origin.REPLAYED
    budget.observe(group)
    assert budget._latest[group.task.id] == [True, True]
    assert budget.rollouts(make_group([])) == 2
    budget.observe(make_group([0.0, 0.0, 0.0, 0.0]))  # the latest four
    assert budget.rollouts(make_group([])) == 4


def test_the_turn_limit_is_the_longest_success() -> None:
    budget, group = BySuccess(4), make_group([0.0, 1.0, 1.0, 0.0])
    assert budget.turns(group) == 0  # no limit before the first success
    for rollout, count in zip(group.rollouts, (5, 2, 3, 4), strict=True):
        rollout.turns = rollout.turns * count
    budget.observe(group)
    assert budget.turns(group) == 3
    budget.observe(make_group([1.0, 1.0, 0.0, 0.0]))  # in one turn each
    assert budget.turns(group) == 3
    again = BySuccess(4)
    again.restore(json.loads(json.dumps(budget.state())))
    assert again.turns(group) == 3


def test_longer_successes_are_still_found() -> None:
    """A lucky success of 2 turns; later successes take 5, and the budget cuts rollouts."""
    budget, lucky = BySuccess(4), make_group([1.0, 0.0])
    lucky.rollouts[0].turns *= 2
    budget.observe(lucky)
    assert budget.turns(lucky) == 2
    for number in range(1, 60):
        group = make_group([0.0, 0.0], number=number)
        for rollout in group.rollouts:
            rollout.turns *= min(budget.turns(group) or 5, 5)
            rollout.facts[SUCCESS] = float(len(rollout.turns) == 5)
        budget.observe(group)
    assert budget._longest[TASK.id] == 5
    limits = [budget.turns(make_group([], number=number)) for number in range(4000)]
    assert set(limits) == {0, 5} and limits == [budget.turns(make_group([], number=n)) for n in range(4000)]
    assert limits.count(0) / 4000 == pytest.approx(1 / 8, abs=0.02), "two in a hundred are four standard errors"
    assert {number % 8 for number, limit in enumerate(limits) if not limit} == set(range(8)), "not periodic"


def test_its_state_is_restored_and_invalid_fields_are_refused() -> None:
    budget, again = observed(6, 2), BySuccess(8)
    again.restore(json.loads(json.dumps(budget.state())))
    assert again.rollouts(make_group([])) == budget.rollouts(make_group([])) == 5
    assert budget.rollouts(make_group([1.0])) == 0  # one wave
    with pytest.raises(ConfigurationError, match="least"):
        BySuccess(4, least=5)
