"""Who gets a second wave: by hand."""

from __future__ import annotations

import pytest

from strop.control.budgets.waves import AgainWhenLost
from strop.errors import ConfigurationError
from strop.types import SUCCESS, Group, Origin, Outcome
from tests.building import TASK, make_group

BUDGET = AgainWhenLost(2, 3)


def test_every_task_has_a_first_wave() -> None:
    assert BUDGET.rollouts(Group(0, TASK, [])) == 2


@pytest.mark.parametrize(
    ("rewards", "more"),
    [((0.0, 0.0), 3), ((1.0, 0.0), 0), ((1.0, 1.0), 0), ((0.25, 0.0), 0)],
)
def test_a_second_only_where_no_rollout_has_any_success(rewards: tuple[float, ...], more: int) -> None:
    assert BUDGET.rollouts(make_group(rewards)) == more


def test_success_decides_whatever_other_rewards_add() -> None:
    group = make_group([-0.3, 0.4])
    for rollout in group.rollouts:
        rollout.facts[SUCCESS] = 0.0
    assert BUDGET.rollouts(group) == 3
    group.rollouts[0].facts[SUCCESS] = 1.0
    assert BUDGET.rollouts(group) == 0


def test_a_wave_of_unknown_success_is_not_lost() -> None:
    group = make_group([0.0, 0.0])
    del group.rollouts[0].facts[SUCCESS]
    assert BUDGET.rollouts(group) == 0


def test_what_failed_or_was_cut_off_makes_no_task_hard() -> None:
    assert BUDGET.rollouts(make_group([0.0, 0.0], failed=[0, 1])) == 0
    assert BUDGET.rollouts(make_group([0.0, 0.0], failed=[0])) == 3, "one rollout that counts failed by itself"
    cut = make_group([0.0, 0.0])
    for rollout in cut.rollouts:
        rollout.outcome = Outcome.TRUNCATED
    assert BUDGET.rollouts(cut) == 0
    cut.rollouts[0].outcome = Outcome.FINISHED
    assert BUDGET.rollouts(cut) == 3


def test_there_is_no_third_wave() -> None:
    group = make_group([0.0] * 5)
    for rollout in group.rollouts[2:]:
        rollout.origin = Origin.GUIDED
    assert BUDGET.rollouts(group) == 0


def test_it_refuses_waves_of_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 2 and -1"):
        AgainWhenLost(2, -1)
    assert AgainWhenLost(1, 1).rollouts(make_group([0.0])) == 1


def test_lost_is_no_success_up_to_rounding() -> None:
    assert [BUDGET.rollouts(make_group([0.0, success])) for success in (0.0, 1e-7, 1e-5)] == [3, 3, 0]
