from __future__ import annotations

import pytest

from strop.capabilities import learners_in
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.few import Few
from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.select.acereason_nemotron import Unsolved
from strop.training.learners import teach
from strop.types import SUCCESS, Origin
from tests.control.samplers.trying import Noting, draws, group_of, restored

ENV = Arithmetic(3)
TASKS = [ENV.task(index) for index in range(4)]


def sampler(most: float = 6 / 16) -> Unsolved:
    return Unsolved(Few((ENV,), 4), most)


def test_a_task_solved_too_often_is_dropped() -> None:
    used = sampler()
    assert draws(used, 4) == TASKS
    used.observe(group_of(TASKS[0], [1.0] * 7 + [0.0] * 9))
    used.observe(group_of(TASKS[1], [1.0] * 6 + [0.0] * 10))
    used.observe(group_of(TASKS[2], [1.0, 1.0]))
    assert draws(used, 6) == [TASKS[1], TASKS[3]] * 3, "6 of 16 are few enough"
    assert used.learn([]) == {"solved_tasks": 2.0, "passed_over": 6.0}


def test_groups_may_come_in_any_order() -> None:
    groups = [group_of(TASKS[0], [1.0], 1, 0), group_of(TASKS[0], [0.0], 0, 1), group_of(TASKS[1], [0.0], 0, 2)]
    for order in (groups, groups[::-1]):
        used = sampler()
        for group in order:
            used.observe(group)
        assert draws(used, 3) == TASKS[1:]


def test_only_own_rollouts_that_count_solve_a_task() -> None:
    used = sampler()
    used.observe(group_of(TASKS[0], [0.0, 1.0, 1.0], failed=[1], pruned=[2]))
    helped = group_of(TASKS[1], [1.0, 1.0])
    for rollout in helped.rollouts:
        rollout.origin = Origin.GUIDED
    used.observe(helped)
    used.observe(group_of(TASKS[2], [1.0], failed=[0]))
    assert draws(used, 4) == TASKS


def test_the_environments_outcome_counts_and_no_other_reward() -> None:
    used, paid = sampler(), group_of(TASKS[0], [5.0, 5.0])
    for rollout in paid.rollouts:
        rollout.rewards, rollout.facts[SUCCESS] = {"outcome": 0.0, "citations": 5.0}, 0.0
    used.observe(paid)
    assert draws(used, 1) == TASKS[:1]


def test_where_all_are_solved_one_is_sampled_after_all() -> None:
    used = sampler(0.0)
    for task in TASKS:
        used.observe(group_of(task, [1.0]))
    assert draws(used, 2) == [TASKS[0], TASKS[1]] and used.learn([])["passed_over"] == 8.0


def test_after_a_thousand_solved_ones_the_next_is_tried_whatever_it_is() -> None:
    env, estimator = Arithmetic(6), Counts()
    inner = Noting(env)
    used = Unsolved(inner)
    for index in range(1100):
        used.observe(group_of(env.task(index), [1.0]))
    assert used.next(3, estimator) == env.task(1000) and used.learn([])["passed_over"] == 1000
    assert inner.asked == [(3, estimator)] * 1001


def test_state_is_restored_and_the_inner_sampler_learns() -> None:
    mixed = Unsolved(Mixture((ENV,), (1.0,)), 0.5)
    assert teach(learners_in(mixed), [])["uneven"] == 0.0
    first = sampler()
    draws(first, 3)
    first.observe(group_of(TASKS[3], [1.0]))
    again = restored(sampler(), first)
    again.inner.restore(first.inner.state())  # type: ignore[attr-defined]
    assert draws(again, 9) == draws(first, 9) and again.learn([]) == first.learn([])


@pytest.mark.parametrize("most", [-0.1, 1.1])
def test_refuses_shares_that_are_none(most: float) -> None:
    with pytest.raises(ConfigurationError, match=f"0 <= most <= 1, got {most}"):
        sampler(most)
