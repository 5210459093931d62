"""Who gets a second wave: by hand."""

from __future__ import annotations

import pytest

from strop.control.budgets.retry_if_all_failed import AgainWhenLost
from strop.errors import ConfigurationError
from strop.types import Group, Origin, Outcome
from tests.building import TASK, make_group

BUDGET = AgainWhenLost(2, 3)


def test_every_task_has_a_first_wave() -> None:
    assert BUDGET.attempts(Group(0, TASK, [])) == 2


@pytest.mark.parametrize(
    ("rewards", "more"),
    [((0.0, 0.0), 3), ((1.0, 0.0), 0), ((1.0, 1.0), 0), ((-1.0, -1.0), 0), ((-1.0, 0.0), 0), ((0.001, 0.0), 3)],
)
def test_a_second_only_where_all_failed_and_not_by_their_format(rewards: tuple[float, ...], more: int) -> None:
    assert BUDGET.attempts(make_group(rewards)) == more


@pytest.mark.parametrize("name", ["outcome", "checked"])
def test_what_the_world_paid_decides_whatever_was_added(name: str) -> None:
    group = make_group([-0.3, -0.1])
    for attempt in group.trajectories:
        attempt.rewards = {name: 0.0, "overlong": attempt.reward}
    assert BUDGET.attempts(group) == 3
    group.trajectories[0].rewards[name] = 1.0
    assert BUDGET.attempts(group) == 0


def test_what_failed_or_was_cut_off_makes_no_task_hard() -> None:
    assert BUDGET.attempts(make_group([0.0, 0.0], failed=[0, 1])) == 0
    assert BUDGET.attempts(make_group([0.0, 0.0], failed=[0])) == 3, "one attempt that counts failed by itself"
    cut = make_group([0.0, 0.0])
    for attempt in cut.trajectories:
        attempt.outcome = Outcome.TRUNCATED
    assert BUDGET.attempts(cut) == 0
    cut.trajectories[0].outcome = Outcome.FINISHED
    assert BUDGET.attempts(cut) == 3


def test_there_is_no_third_wave() -> None:
    group = make_group([0.0] * 5)
    for attempt in group.trajectories[2:]:
        attempt.origin = Origin.GUIDED
    assert BUDGET.attempts(group) == 0


def test_it_refuses_waves_of_nothing() -> None:
    with pytest.raises(ConfigurationError, match="got 2 and 0"):
        AgainWhenLost(2, 0)
    assert AgainWhenLost(1, 1).attempts(make_group([0.0])) == 1


def test_lost_is_what_was_paid_a_thousandth_at_most() -> None:
    found = [AgainWhenLost(2, 3).attempts(make_group([0.0, paid])) for paid in (0.0, 0.001, 0.0011, -0.001, -0.0011)]
    assert found == [3, 3, 0, 3, 0]
