"""Courses: tokens are counted where they are sampled, lag delays what is known, the same seed gives the same course."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.control.samplers.uniform import Uniform
from strop.errors import ConfigurationError, StarvationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.select.dars import Rebalanced
from strop.simulate.compare_samplers import (
    contest,
    course_of,
    oracle,
    oracle_per_token,
    permuted,
    refilled,
    taste,
    uniform,
)
from strop.simulate.learner import Learner
from strop.simulate.population import populate
from strop.simulate.scenarios import SCENARIOS, Kind, Scenario
from strop.simulate.training_loop import Control, Course
from strop.simulate.transplant import moved
from strop.types import Group

SMALL = Scenario(
    "small",
    "two kinds, the second one dear and impossible",
    (Kind(tasks=6, tokens=3, is_target=True), Kind(tasks=6, tokens=7, impossible=1.0)),
    rate=0.5,
    steps=4,
    groups_per_step=4,
    group_size=2,
)


@dataclass
class Watched(Counts):
    """A pass-rate estimator that keeps what it was shown."""

    shown: list[Group] = field(default_factory=list, init=False)

    def observe(self, group: Group) -> None:
        self.shown.append(group)
        super().observe(group)


def watched(scenario: Scenario, seed: int = 0, **parts: object) -> tuple[Course, Watched]:
    learner = Learner(populate(scenario, seed))
    estimator = Watched()
    control = Control(Uniform(learner.population.envs), estimator, Fixed(scenario.group_size))
    return Course(learner, replace(control, **parts), seed), estimator  # type: ignore[arg-type]


def test_every_sampled_token_is_counted_kept_or_dropped() -> None:
    for gates in ((), (ZeroVariance(),)):
        course, estimator = watched(SMALL, gates=gates)
        course.curve(tokens=300)
        by_hand = sum(t.num_sampled for group in estimator.shown for t in group.rollouts)
        assert course.tokens == by_hand >= 300
        costs = {0: 3, 1: 7}
        assert by_hand == sum(2 * costs[group.task.level] for group in estimator.shown)
        assert course.rollouts == 2 * len(estimator.shown)


def test_what_gates_drop_is_replaced_and_shown_all_the_same() -> None:
    course, estimator = watched(SMALL, gates=(ZeroVariance(),))
    course.step()
    contrast = [group for group in estimator.shown if np.ptp(group.rewards) > 0]
    assert len(contrast) == 4 < len(estimator.shown)
    assert [group.number for group in estimator.shown] == list(range(len(estimator.shown)))


def test_a_env_without_contrast_ends_the_course_with_a_reason() -> None:
    hopeless = replace(SMALL, kinds=tuple(replace(kind, impossible=1.0) for kind in SMALL.kinds))
    course, _ = watched(hopeless, gates=(ZeroVariance(),))
    with pytest.raises(StarvationError, match="step 1 needs 4 groups and has 0"):
        course.step()


def test_budgets_are_asked_in_waves() -> None:
    course, estimator = watched(SMALL, budget=Rebalanced(size=2, most=6))
    course.step()
    sizes = {len(group.rollouts) for group in estimator.shown if group.task.level == 1}
    assert sizes == {3}  # nobody of 2 was right: at a share of 1/4 each has an advantage of 3/8, and 8/3 of them make 1
    assert course.rollouts == sum(len(group.rollouts) for group in estimator.shown)


def test_groups_are_real_ones() -> None:
    course, estimator = watched(SMALL)
    course.step(), course.step()
    late = estimator.shown[-1]
    assert late.version == 1 and late.predicted is not None and 0 < late.predicted[0] < 1
    assert {int(v) for t in late.rollouts for turn in t.turns for v in turn.versions} == {1}
    assert all(t.rewards["outcome"] == t.reward for t in late.rollouts)


def test_lag_delays_what_is_learned_and_what_is_known() -> None:
    course, estimator = watched(replace(SMALL, lag=2))
    seen = []
    for _ in range(4):
        course.step()
        seen.append((course.learner.version, len(estimator.shown)))
    assert seen == [(0, 0), (0, 0), (1, 4), (2, 8)]
    assert sorted(group.number for group in estimator.shown[:4]) == [0, 1, 2, 3]
    assert [group.version for group in estimator.shown] == [0] * 8


def test_a_biased_prior_is_shown_before_and_costs_nothing() -> None:
    course, estimator = watched(replace(SMALL, bias=50.0))
    assert course.tokens == course.rollouts == 0 and len(estimator.shown) == 8
    assert all(t.reward == 0 for group in estimator.shown for t in group.rollouts)
    assert watched(replace(SMALL, bias=-50.0))[1].shown[0].rewards.tolist() == [1.0, 1.0]


def test_the_same_seed_gives_the_same_course() -> None:
    scenario = replace(SCENARIOS["ladder"], steps=3, lag=1)
    one, two, other = (course_of(scenario, refilled, seed).curve(scenario.tokens) for seed in (1, 1, 2))
    assert one == two != other


def test_the_oracle_tries_what_is_worth_most() -> None:
    """p (1 - p) is .25 and .105; of kinds that help the target alike, a token of the second buys four times as much."""
    kinds = (Kind(tasks=2, spread=0.0, tokens=9, is_target=True), Kind(tasks=4, skill=2.0, spread=0.0, tokens=1))
    scenario = replace(SMALL, kinds=kinds, groups_per_step=2, transfer=1.0)
    learner = Learner(populate(scenario, 0))
    for make, level in ((oracle, 0), (oracle_per_token, 1)):
        control = make(learner, 0)
        chosen = [control.sampler.next(0, control.estimator) for _ in range(2)]
        assert {task.level for task in chosen} == {level} and len({task.id for task in chosen}) == 2


def test_a_step_is_one_step_whoever_chooses() -> None:
    for make in (uniform, oracle, taste, permuted(oracle)):
        course = course_of(SMALL, make, 0)
        course.step()
        assert course.learner.version == 1


def test_parts_move_into_other_envs_without_their_memory() -> None:
    first, second = populate(SMALL, 0), populate(SMALL, 1)
    course, _ = watched(SMALL)
    used = course.control
    course.step()
    there = moved(used, second.envs, 5)
    assert there.sampler.envs == second.envs  # type: ignore[attr-defined]
    assert there.sampler.next(0, there.estimator) == second.envs[0].task(0)
    assert used.sampler.next(0, used.estimator) == first.envs[0].task(2)


def test_dropping_and_refilling_alone_gains_nothing_and_says_so() -> None:
    """A dropped group gave no gradient anyway, and its tokens are spent."""
    scenario = replace(SCENARIOS["haystack"], steps=40)
    found = contest(scenario, {"refilled": refilled, "oracle": oracle, "permuted": permuted(oracle)}, seeds=3)
    mean, _, high = found["refilled"].spread
    assert mean > 0.95 and high is not None and high > 1
    assert found["refilled"].verdict == "gains nothing that shows" or found["refilled"].verdict.startswith("loses")
    assert found["oracle"].spread[0] < 0.3 and found["oracle"].verdict.startswith("gains: 0.")
    assert found["permuted"].spread[0] > 0.8
    assert found["uniform"].shares == (1.0,) * 3 and len(set(found["uniform"].finals)) == 3


def test_an_arm_that_does_not_come_as_far_is_ended() -> None:
    class Never(Uniform):
        def next(self, step, estimator):  # type: ignore[no-untyped-def]
            return self.envs[1].task(0)

    def never(learner: Learner, seed: int) -> Control:
        return replace(uniform(learner, seed), sampler=Never(learner.population.envs))

    found = contest(SMALL, {"never": never}, seeds=2)["never"]
    assert found.shares == (2.0, 2.0) and found.num_late == 2 and found.verdict.startswith("loses")
    assert found.plain()["not_reached"] == 2
    with pytest.raises(ConfigurationError, match="at least 2 seeds"):
        contest(SMALL, {}, seeds=1)
